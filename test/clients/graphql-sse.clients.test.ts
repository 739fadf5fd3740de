import { createClient, NetworkError } from 'graphql-sse';
import { afterEach, expect, test } from '../support/jest.ts';
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

test('graphql-sse gets the GraphQL errors of a rejected operation, and completes', async () => {
  const results = clientWith().iterate({ query: 'subscription { productSold { pk } }' });
  expect((await results.next()).value).toMatchObject({
    errors: [{ extensions: { code: 'GRAPHQL_VALIDATION_FAILED' } }],
  });
  expect((await results.next()).done).toBe(true);
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
