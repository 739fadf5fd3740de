import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { onAbort, type Abortable } from '../../src/core/abort.ts';
import { useShop } from '../support/shop.ts';

// Several counts in one request.
const shop = useShop({ GRAPHQL_MAX_COST: '10000' });

afterEach(() => void jest.restoreAllMocks());

/** Makes reads with this SQL run until they are cancelled. Returns the SQL of the cancelled ones. */
function runForever(sql: string): string[] {
  const { statements } = shop.database;
  const read = statements.read.bind(statements);
  const cancelled: string[] = [];
  jest.spyOn(statements, 'read').mockImplementation((statement, prepared, request?: Abortable) => {
    if (!statement.text.includes(sql)) return read(statement, prepared, request);
    // A read without a limit would wait until the test times out.
    if (!request?.begin) return Promise.reject(new Error('unlimited'));
    request.begin();
    return new Promise((_done, fail) =>
      onAbort(request.signal, () => {
        cancelled.push(statement.text);
        fail(Object.assign(new Error('cancelled'), { name: 'AbortError' }));
      }),
    );
  });
  return cancelled;
}

const COUNT = 'select count(*) as "count" from "product"';

describe('P4 the count of a filtered list', () => {
  test.each([
    ['search: "Product"', 'PK'],
    ['priceMin: 1', 'PRICE'],
  ])(
    'P4 is cancelled after a second with an error for totalCount: %s, ordered by %s',
    async (filter, field) => {
      await shop.makeProduct({ name: 'Product', price: '2.00', barcode: '4006381333931' });
      const query = (fields: string) =>
        shop.graphql(
          `{ products(filter: { ${filter} }, orderBy: { field: ${field} }) { ${fields} } }`,
        );
      expect((await query('totalCount nodes { name }')).body.data.products).toEqual({
        totalCount: 1,
        nodes: [{ name: 'Product' }],
      });
      const cancelled = runForever(COUNT);
      const { body } = await query('totalCount nodes { name }');
      expect(body.errors).toMatchObject([
        {
          path: ['products', 'totalCount'],
          message: expect.stringContaining('omit totalCount'),
          extensions: { code: 'QUERY_TOO_COMPLEX' },
        },
      ]);
      expect(cancelled).toHaveLength(1);
      expect((await query('nodes { name }')).body.data.products.nodes).toEqual([
        { name: 'Product' },
      ]);
    },
  );

  test.each([
    ['', 1, COUNT, 'products(filter: { priceMin: 1 }) { totalCount }'],
    [' of a whole list', 4, COUNT.replace('product', 'user'), 'users { totalCount }'],
  ])('P4%s runs %d at a time per address', async (_what, limit, sql, list) => {
    const as = await shop.makeUser();
    await shop.makeProduct({ name: 'Product' });
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    let [running, most] = [0, 0];
    jest.spyOn(statements, 'read').mockImplementation(async (statement, ...rest) => {
      if (!statement.text.startsWith(sql)) return read(statement, ...rest);
      most = Math.max(most, ++running);
      return read(statement, ...rest).finally(() => running--);
    });
    const query = `{ a: ${list} b: ${list} }`;
    const answers = Array.from({ length: 8 }, () => shop.graphql(query, {}, { as }));
    for (const { body } of await Promise.all(answers))
      expect(body.data.b).toEqual({ totalCount: 1 });
    expect(most).toBe(limit);
  });

  test('P4 has at most twenty waiting requests, each with one place for all its counts', async () => {
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    const released = Promise.withResolvers<void>();
    jest.spyOn(statements, 'read').mockImplementation(async (statement, ...rest) => {
      if (statement.text.startsWith(COUNT)) await released.promise;
      return read(statement, ...rest);
    });
    const lists = Array.from(
      { length: 4 },
      (_, index) => `p${index}: products(filter: { priceMin: ${index} }) { totalCount }`,
    );
    let rejected = 0;
    const answers = Array.from({ length: 24 }, async () => {
      const { body } = await shop.graphql(`{ ${lists.join(' ')} }`);
      // The counts run once the requests beyond the limit have been rejected.
      if (body.errors && ++rejected === 3) released.resolve();
      return body;
    });
    const bodies = await Promise.all(answers);
    const codes = bodies.map(({ errors = [] }) =>
      (errors as { extensions: { code: string } }[]).map(({ extensions }) => extensions.code),
    );
    expect(codes.filter((own) => own.length === 0)).toHaveLength(21);
    expect(new Set(codes.flat())).toEqual(new Set(['RATE_LIMITED']));
  });
});

test('P4 the look-up of all entries that match a filter is cancelled after two seconds with an error for the page', async () => {
  await shop.makeProduct({ name: 'Product' });
  const query =
    '{ products(filter: { nameContains: "o" }, orderBy: { field: PRICE }) { nodes { name } } }';
  expect((await shop.graphql(query)).body.data.products.nodes).toEqual([{ name: 'Product' }]);
  const cancelled = runForever(' offset 0)');
  const { body } = await shop.graphql(query);
  expect(body.errors).toMatchObject([
    {
      path: ['products'],
      message: expect.stringContaining('narrow it'),
      extensions: { code: 'QUERY_TOO_COMPLEX' },
    },
  ]);
  expect(cancelled).toHaveLength(1);
});
