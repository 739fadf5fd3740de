import { isDeepStrictEqual } from 'node:util';
import { expect, jest, test } from '../support/jest.ts';
import { inTransaction } from '../../src/request/context.ts';
import { countOf, recentRevision } from '../../src/pagination/row-counts.ts';
import { PRODUCT_ROW_COUNTS } from '../../src/features/products/product-lists.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const LIST = '/api/v2/shop/products';
const PAGE_SIZE = 10;
const LAST_PK = 2_147_483_647;
/** Gaps, a full range of 16,384, ranges far apart, and both limits of primary keys. */
const SCATTERED = [
  'generate_series(1, 600) as n where n % 7 <> 3',
  'generate_series(1025, 1280) as n',
  'generate_series(16380, 32773) as n',
  'generate_series(200000, 202999) as n',
  `generate_series(${LAST_PK - 2}, ${LAST_PK}::bigint) as n`,
];

test('the count and the pages by number are those of the rows, with gaps, full ranges, and ranges far apart', async () => {
  for (const series of SCATTERED) await add(series);

  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);
});

test('inside a transaction, the count and the revision include its own writes', async () => {
  await shop.makeProducts(3);
  const before = await recentRevision(shop.context(), PRODUCT_ROW_COUNTS);
  await inTransaction(shop.context(), async (tx) => {
    await tx.em.execute('delete from product where pk = 1');
    expect(await countOf(tx, PRODUCT_ROW_COUNTS)).toBe(2);
    expect(await recentRevision(tx, PRODUCT_ROW_COUNTS)).not.toBe(before);
  });
});

test('a row with a changed primary key is counted in its new range', async () => {
  for (const series of SCATTERED) await add(series);

  const before = await seen();
  await shop.sql('update product set pk = pk + 70000 where pk <= 300');
  await shop.sql('update product set pk = pk + 1000 where pk between 1100 and 1150');
  const after = await seen();
  expect(after.count).toBe(before.count);
  expect(after.version).toBeGreaterThan(before.version);
  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);
});

test('any other change of a row leaves the count and increases the version, so that a cached page shows it', async () => {
  for (const series of SCATTERED) await add(series);
  const names = async (): Promise<string[]> =>
    (await page('page=1')).body.items.map(({ name }: { name: string }) => name);
  for (let time = 0; time < 3; time++) expect((await names())[1]).toBe('Product 2');

  const before = await seen();
  await shop.sql(`update product set name = 'Changed' where pk = 2`);
  const after = await seen();
  expect(after.count).toBe(before.count);
  expect(after.version).toBeGreaterThan(before.version);
  expect((await names())[1]).toBe('Changed');
  expect(await wrongCounts()).toEqual([]);
});

test('P15 another server has another revision, even with the same number of writes', async () => {
  const { statements } = shop.database;
  const revision = () => {
    statements.commits++;
    return recentRevision(shop.context(), PRODUCT_ROW_COUNTS);
  };
  const before = await revision();
  expect(await revision()).toBe(before);
  const read = statements.read.bind(statements);
  const replaced = jest.spyOn(statements, 'read').mockImplementation(async (...args) => {
    const rows = await read(...args);
    return rows.map((row) => ({ revision: `${String(row['revision'])} replaced` }));
  });
  try {
    expect(await revision()).not.toBe(before);
  } finally {
    replaced.mockRestore();
  }
  expect(await revision()).toBe(before);
});

test('an emptied catalogue counts 0 and has no pages, and later rows are counted from 0', async () => {
  for (const series of SCATTERED) await add(series);

  const before = await seen();
  await shop.sql('delete from product');
  const after = await seen();
  expect(after.count).toBe(0);
  expect(after.version).toBeGreaterThan(before.version);
  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);

  await add('generate_series(250, 260) as n');
  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);
});

test('a truncated catalogue counts 0, and its version only increases', async () => {
  for (const series of SCATTERED) await add(series);
  const filled = await seen();

  await shop.sql('truncate product');
  const truncated = await seen();
  expect(truncated.count).toBe(0);
  expect(truncated.version).toBeGreaterThan(filled.version);
  expect(await wrongCounts()).toEqual([]);

  await shop.sql('truncate product');
  const again = await seen();
  expect(again.version).toBeGreaterThan(truncated.version);

  await add('generate_series(65530, 65545) as n');
  expect((await seen()).version).toBeGreaterThan(again.version);
  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);
});

test('concurrent creations, changes and deletions by REST and GraphQL leave the count exact', async () => {
  const ada = await shop.makeUser({ scopes: ['products:write'] });
  const token = shop.tokenOf(ada);
  const made = await shop.makeProducts(40);

  const creations = Array.from({ length: 40 }, () =>
    shop.rest('POST', '/api/v1/shop/product/', {
      token,
      json: { name: 'New', barcode: shop.newBarcode(), price: 1 },
    }),
  );
  const changes = made
    .slice(20)
    .map(({ pk }) => write(`updateProduct(pk: "${pk}", input: { name: "Changed" })`, token));
  const deletions = made.slice(0, 20).map(({ pk }) => write(`deleteProduct(pk: "${pk}")`, token));
  const [created, written] = await Promise.all([
    Promise.all(creations),
    Promise.all([...changes, ...deletions]),
  ]);

  expect(created.map(({ status }) => status)).toEqual(Array<number>(40).fill(201));
  expect(written.map(({ body }) => body.errors)).toEqual(Array(40).fill(undefined));
  expect((await seen()).count).toBe(60);
  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);
});

/** Adds a product for each primary key `n` of the series. */
function add(series: string): Promise<unknown> {
  return shop.sql(insert(series));
}

function insert(series: string): string {
  return `
    insert into product (pk, name, barcode, price, created_at, updated_at)
    select n, 'Product ' || n, digits || (10 - (
      select sum(substr(digits, place, 1)::int * case when place % 2 = 0 then 3 else 1 end) from generate_series(1, 12) place) % 10) % 10, 1, now(), now()
    from (select n from ${series}) as pks, lateral (select '20' || lpad(n::text, 10, '0') as digits) as made`;
}

function write(field: string, token: string): Promise<Answer> {
  return shop.graphql(`mutation { ${field} { pk } }`, {}, { token });
}

/** Returns the count, and the number of writes, which the revision begins with. */
async function seen(): Promise<{ version: number; count: number }> {
  const ctx = shop.context();
  return {
    version: parseInt(await recentRevision(ctx, PRODUCT_ROW_COUNTS), 10),
    count: await countOf(ctx, PRODUCT_ROW_COUNTS),
  };
}

function page(query: string): Promise<Answer> {
  return shop.rest('GET', `${LIST}?${query}`);
}

/** Returns the differences between the rows, the row counts, both APIs and the revision. */
async function wrongCounts(): Promise<unknown[]> {
  const counted = await shop.sql(`
    select bucket, sum(rows)::int as rows from product_row_count group by bucket having sum(rows) <> 0 order by 1`);
  const actual = await shop.sql(`
    select (pk - 1) >> 14 as bucket, count(*)::int as rows from product group by 1 order by 1`);
  const [row] = await shop.sql('select count(*)::int as count from product');
  const [rest, graphql, version] = await Promise.all([
    page('page=1'),
    shop.graphql('{ products { totalCount } }'),
    seen(),
  ]);
  return [
    ['the ranges', counted, actual],
    ['REST', rest.body.count, row?.['count']],
    ['GraphQL', graphql.body.data.products.totalCount, row?.['count']],
    ['countOf', version.count, row?.['count']],
  ].filter(([, got, expected]) => !isDeepStrictEqual(got, expected));
}

/** Returns the wrong pages, by offset and by number, at and around the start of each range. */
async function wrongPages(): Promise<unknown[]> {
  const pks = (await shop.sql('select pk from product order by pk')).map(({ pk }) => Number(pk));
  const starts = pks.flatMap((pk, index) =>
    index === 0 || rangeOf(pk) !== rangeOf(pks[index - 1] ?? 0) ? [index] : [],
  );
  const sampled = starts.filter((_, index) => index % Math.ceil(starts.length / 12) === 0);
  const candidates = [0, 256, 65_536, pks.length, pks.length + 65_536, ...sampled].flatMap(
    (offset) => [offset - 1, offset, offset + 1],
  );
  const offsets = [...new Set(candidates)].filter((offset) => offset >= 0);
  const queries = [
    ...offsets.map((offset) => ({ query: `limit=3&offset=${offset}`, offset, limit: 3 })),
    ...offsets.map((offset) => {
      const before = Math.floor(offset / PAGE_SIZE);
      return { query: `page=${before + 1}`, offset: before * PAGE_SIZE, limit: PAGE_SIZE };
    }),
    { query: 'limit=1000&offset=200', offset: 200, limit: 1000 },
  ];
  const wrong: unknown[] = [];
  for (const { query, offset, limit } of queries) {
    const { body } = await page(query);
    const got = [body.count, body.items.map(({ pk }: { pk: number }) => pk)];
    const expected = [pks.length, pks.slice(offset, offset + limit)];
    if (!isDeepStrictEqual(got, expected)) wrong.push([query, got, expected]);
  }
  return wrong;
}

function rangeOf(pk: number): number {
  return Math.floor((pk - 1) / 16_384);
}
