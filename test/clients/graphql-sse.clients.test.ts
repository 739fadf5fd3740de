import { createClient, NetworkError } from 'graphql-sse';
import { afterEach, expect, test } from '../support/jest.ts';
import { writtenUntil } from '../support/events.ts';
import { useShop } from '../support/shop.ts';

const CREATED = 'subscription { productChanged(kinds: [CREATED]) { cursor pk } }';

const shop = useShop();
const clients: ReturnType<typeof createClient<boolean>>[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.dispose();
});

function clientWith(options: Partial<Parameters<typeof createClient<boolean>>[0]> = {}) {
  const client = createClient<boolean>({ url: `${shop.url}/graphql`, ...options });
  clients.push(client);
  return client;
}

test('graphql-sse subscribes, each subscription on a connection of its own', async () => {
  const [one, other] = [clientWith().iterate({ query: CREATED }), clientWith().iterate({ query: CREATED })];
  const told = await writtenUntil(shop, Promise.all([one.next(), other.next()]));
  for (const { value } of told) expect(value).toMatchObject({ data: { productChanged: { pk: expect.any(String) } } });
});

test('graphql-sse gets the GraphQL errors of a refused operation, and the end', async () => {
  const told = clientWith().iterate({ query: 'subscription { productSold { pk } }' });
  expect((await told.next()).value).toMatchObject({ errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }] });
  expect((await told.next()).done).toBe(true);
});

test('graphql-sse gets UNAUTHENTICATED and the end when its token expires', async () => {
  const token = shop.tokenOf(await shop.makeUser());
  const told = clientWith({ headers: { Authorization: `Bearer ${token}` } }).iterate({ query: CREATED });
  await writtenUntil(shop, told.next());
  shop.pass(24 * 3_600_000);
  let last;
  for await (const result of told) last = result;
  expect(last).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
});

test.each([
  ['credentials that are not valid', { headers: { Authorization: 'Bearer nonsense' } }, 401],
  ['the single connection mode', { singleConnection: true }, 405],
])('graphql-sse gets the response that refuses %s', async (_what, options, status) => {
  const told = clientWith({ ...options, retryAttempts: 0 }).iterate({ query: CREATED });
  const error = await told.next().catch((thrown: unknown) => thrown);
  expect([error instanceof NetworkError, (error as NetworkError<Response>).response?.status]).toEqual([true, status]);
});
