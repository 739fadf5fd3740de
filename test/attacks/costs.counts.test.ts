import { afterEach, describe, expect, jest, test } from '../support/jest.ts';
import { onAbort, type Abortable } from '../../src/core/abort.ts';
import { useShop } from '../support/shop.ts';

// Several counts in one request.
const shop = useShop({ GRAPHQL_MAX_COST: '10000' });

afterEach(() => void jest.restoreAllMocks());

describe('P4 the count of a filtered list', () => {
  /** Makes counts run until they are cancelled. Returns the SQL of the cancelled ones. */
  const countForever = () => {
    const { statements } = shop.context();
    if (!statements) throw new Error('no statements');
    const read = statements.read.bind(statements);
    const cancelled: string[] = [];
    jest
      .spyOn(statements, 'read')
      .mockImplementation((statement, prepared, request?: Abortable) => {
        if (!statement.text.startsWith('select count(*) as "count" from "product"'))
          return read(statement, prepared, request);
        // A count without a limit would wait until the test times out.
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
  };

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
      const cancelled = countForever();
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

  test('P4 runs for one request per address at a time', async () => {
    await shop.makeProduct({ name: 'Product' });
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    let [running, most] = [0, 0];
    jest.spyOn(statements, 'read').mockImplementation(async (statement, ...rest) => {
      if (!statement.text.startsWith('select count(*) as "count" from "product"'))
        return read(statement, ...rest);
      most = Math.max(most, ++running);
      return read(statement, ...rest).finally(() => running--);
    });
    const query =
      '{ a: products(filter: { priceMin: 1 }) { totalCount } b: products(filter: { priceMin: 0 }) { totalCount } }';
    const answers = await Promise.all(Array.from({ length: 4 }, () => shop.graphql(query)));
    for (const { body } of answers) expect(body.data.b).toEqual({ totalCount: 1 });
    expect(most).toBe(1);
  });

  test('P4 has at most twenty waiting requests, each with one place for all its counts', async () => {
    const { statements } = shop.database;
    const read = statements.read.bind(statements);
    const released = Promise.withResolvers<void>();
    jest.spyOn(statements, 'read').mockImplementation(async (statement, ...rest) => {
      if (statement.text.startsWith('select count(*) as "count" from "product"'))
        await released.promise;
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

  test.each(['search: "a"', 'priceMin: 1'])(
    'P4 costs 300 more than a list without a filter, and 445 more for its count: %s',
    async (filter) => {
      const costOf = async (args: string, count = '') => {
        const query = `{ products(first: 10${args}) { ${count} nodes { pk } } }`;
        return (
          await shop.rest('POST', '/graphql', { json: { query, extensions: { cost: true } } })
        ).body.extensions.cost.requested as number;
      };
      const filtered = `, filter: { ${filter} }`;
      expect(await costOf(filtered)).toBe((await costOf('')) + 300);
      expect(await costOf(filtered, 'totalCount')).toBe((await costOf('', 'totalCount')) + 745);
    },
  );
});

describe('P4 the look-up of all entries that match a filter', () => {
  test.each(['nameContains: "o"'])(
    'P4 is cancelled after two seconds with an error for the page: %s',
    async (filter) => {
      await shop.makeProduct({ name: 'Product' });
      const query = `{ products(filter: { ${filter} }, orderBy: { field: PRICE }) { nodes { name } } }`;
      expect((await shop.graphql(query)).body.data.products.nodes).toEqual([{ name: 'Product' }]);
      const { statements } = shop.database;
      const read = statements.read.bind(statements);
      let cancelled = 0;
      jest
        .spyOn(statements, 'read')
        .mockImplementation((statement, prepared, request?: Abortable) => {
          if (!statement.text.includes(' offset 0)')) return read(statement, prepared, request);
          if (!request?.begin) return Promise.reject(new Error('unlimited'));
          request.begin();
          return new Promise((_done, fail) =>
            onAbort(request.signal, () => {
              cancelled++;
              fail(Object.assign(new Error('cancelled'), { name: 'AbortError' }));
            }),
          );
        });
      const { body } = await shop.graphql(query);
      expect(body.errors).toMatchObject([
        {
          path: ['products'],
          message: expect.stringContaining('narrow it'),
          extensions: { code: 'QUERY_TOO_COMPLEX' },
        },
      ]);
      expect(cancelled).toBe(1);
    },
  );
});
