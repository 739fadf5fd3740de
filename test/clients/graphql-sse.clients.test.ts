import { createClient, NetworkError } from 'graphql-sse';
import { afterEach, expect, test } from '../support/jest.ts';
import { writeUntil } from '../support/events.ts';
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

test('graphql-sse subscribes, each subscription on its own connection', async () => {
  const [one, other] = [
    clientWith().iterate({ query: CREATED }),
    clientWith().iterate({ query: CREATED }),
  ];
  const results = await writeUntil(shop, Promise.all([one.next(), other.next()]));
  for (const { value } of results)
    expect(value).toMatchObject({ data: { productChanged: { pk: expect.any(String) } } });
});

test('graphql-sse gets the GraphQL errors of a rejected operation, and completes', async () => {
  const results = clientWith().iterate({ query: 'subscription { productSold { pk } }' });
  expect((await results.next()).value).toMatchObject({
    errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
  });
  expect((await results.next()).done).toBe(true);
});

test('graphql-sse gets UNAUTHENTICATED and completes when its token expires', async () => {
  const token = shop.tokenOf(await shop.makeUser());
  const results = clientWith({ headers: { Authorization: `Bearer ${token}` } }).iterate({
    query: CREATED,
  });
  await writeUntil(shop, results.next());
  shop.advanceClock(24 * 3_600_000);
  let last;
  for await (const result of results) last = result;
  expect(last).toMatchObject({ errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
});

test.each([
  ['credentials that are not valid', { headers: { Authorization: 'Bearer nonsense' } }, 401],
  ['the single connection mode', { singleConnection: true }, 405],
])('graphql-sse gets the response that rejects %s', async (_what, options, status) => {
  const results = clientWith({ ...options, retryAttempts: 0 }).iterate({ query: CREATED });
  const error = await results.next().catch((thrown: unknown) => thrown);
  expect([
    error instanceof NetworkError,
    (error as NetworkError<Response>).response?.status,
  ]).toEqual([true, status]);
});
