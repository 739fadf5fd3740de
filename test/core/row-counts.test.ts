import { isDeepStrictEqual } from 'node:util';
import { expect, test } from '../support/jest.ts';
import { inTransaction } from '../../src/request/context.ts';
import { recentCounts } from '../../src/pagination/row-counts.ts';
import { PRODUCT_ROW_COUNTS } from '../../src/features/products/product-lists.ts';
import { insertingPks } from '../support/many-products.ts';
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
  const before = (await recentCounts(shop.context(), PRODUCT_ROW_COUNTS)).revision;
  await inTransaction(shop.context(), async (tx) => {
    await tx.em.execute('delete from product where pk = 1');
    expect((await recentCounts(tx, PRODUCT_ROW_COUNTS)).count).toBe(2);
    expect((await recentCounts(tx, PRODUCT_ROW_COUNTS)).revision).not.toBe(before);
  });
});

test.each([
  [
    'rows with changed primary keys are counted in their new ranges',
    `update product set pk = pk + 70000 where pk <= 300;
      update product set pk = pk + 1000 where pk between 1100 and 1150`,
    false,
  ],
  ['an emptied catalogue counts 0 and has no pages', 'delete from product', true],
  ['a truncated catalogue counts 0', 'truncate product', true],
  ['a catalogue truncated twice counts 0', 'truncate product; truncate product', true],
])('%s, the version increases, and later rows are counted', async (_what, statements, isEmpty) => {
  for (const series of SCATTERED) await add(series);
  const before = await seen();
  await shop.sql(statements);
  const after = await seen();
  expect(after.count).toBe(isEmpty ? 0 : before.count);
  expect(after.version).toBeGreaterThan(before.version);
  expect(await wrongCounts()).toEqual([]);
  expect(await wrongPages()).toEqual([]);

  await add('generate_series(65530, 65545) as n');
  expect((await seen()).version).toBeGreaterThan(after.version);
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
  return shop.sql(insertingPks(series));
}

function write(field: string, token: string): Promise<Answer> {
  return shop.graphql(`mutation { ${field} { pk } }`, {}, { token });
}

/** Returns the count, and the number of writes, which the revision begins with. */
async function seen(): Promise<{ version: number; count: number }> {
  const { revision, count } = await recentCounts(shop.context(), PRODUCT_ROW_COUNTS);
  return { version: parseInt(revision, 10), count };
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
