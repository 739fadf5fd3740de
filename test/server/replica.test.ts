import { afterEach, beforeEach, expect, jest, test } from '../support/jest.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop({ DATABASE_REPLICA_URL: workerDatabase().DATABASE_URL });

const LIST = '/api/v1/shop/products';
const PAGE = '/api/v2/shop/products';

/** Texts of the reads of products, by server. */
let reads: { replica: string[]; primary: string[] };

beforeEach(async () => {
  await shop.makeProducts(3);
  reads = { replica: [], primary: [] };
  const { statements, replica } = shop.database;
  for (const [texts, server] of [
    [reads.replica, replica],
    [reads.primary, statements],
  ] as const) {
    if (!server) throw new Error('The shop has no replica');
    const read = server.read.bind(server);
    jest.spyOn(server, 'read').mockImplementation((statement, ...rest) => {
      if (/ from \(?(select .*from )?"?product"?\b/.test(statement.text))
        texts.push(statement.text);
      return read(statement, ...rest);
    });
  }
});

afterEach(() => {
  jest.restoreAllMocks();
});

test.each([
  ['a product', () => shop.rest('GET', '/api/v1/shop/product/1')],
  ['a page', () => shop.rest('GET', `${PAGE}?page=1`)],
  ['the whole list', () => shop.rest('GET', LIST)],
  ['a GraphQL page', () => shop.graphql('{ products(first: 2) { nodes { name } } }')],
])('clients without credentials read from the replica: %s', async (_what, send) => {
  expect((await send()).status).toBe(200);
  expect([reads.replica.length > 0, reads.primary]).toEqual([true, []]);
});

test('the whole list of a replica has no ETag, because another replica may lack the last writes', async () => {
  const { headers } = await shop.rest('GET', LIST);
  expect(headers.get('etag')).toBe(null);
});
