import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { fill } from '../../bench/catalogue.ts';
import { LOOKED_THROUGH } from '../../src/pagination/list-definition.ts';
import { makeDatabase, type TestDatabase } from '../support/databases.ts';
import { readingsOf } from '../support/readings.ts';
import { Shop } from '../support/shop.ts';

const PRODUCTS = 1_000_000;
/** Making the million takes longer than a test may. */
const PREPARATION_MS = 500_000;
const SIZE = 20;
/** All others are called `Product 123 Oak`, `… Steel`, `… Glass` or `… Linen`, by their pk. */
const KETTLES = 100;
const LANTERNS = 10_000;
const WORDS_IN_ALL = 50_000;
const BARCODE = '4000000000013';

const PAGE = `query ($first: Int, $after: String, $last: Int, $before: String, $filter: ProductFilter, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, filter: $filter, orderBy: $orderBy) {
    nodes { pk name }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}`;
const READS = /from "product"|from product_word/;

const PK = 'product_pkey';
const NAME = 'product_name_key_pk_index';
const PRICE = 'product_price_pk_index';
const CREATED = 'product_created_at_pk_index';
const UPDATED = 'product_updated_at_pk_index';
const BARCODES = 'product_barcode_unique';
const WORDS = 'product_words_index';
const TRIGRAMS = 'product_name_key_trigram_index';
const DICTIONARY = 'product_word_word_index';

let made: TestDatabase;
let client: pg.Client;
let shop: Shop;

beforeAll(async () => {
  made = await makeDatabase(`shopfront_search_plans_${process.pid}`);
  client = new pg.Client({ connectionString: made.env['DATABASE_URL'] });
  await client.connect();
  await fill(client, PRODUCTS);
  await client.query(`update product set name = 'Kettle of Brass ' || pk where pk % ${PRODUCTS / KETTLES} = 1`);
  // Together, and at the end.
  await client.query(`update product set name = 'Paper Lantern ' || pk where pk > ${PRODUCTS - LANTERNS} and name not like 'Kettle%'`);
  // As many words as a catalogue of a million has.
  await client.query(
    `insert into product_word (word) select translate(left(md5(n::text), 12), '0123456789', 'ghijklmnop') from generate_series(1, ${WORDS_IN_ALL}) as n`,
  );
  await client.query('vacuum analyze');
  shop = await new Shop(made.env).start();
}, PREPARATION_MS);

afterAll(async () => {
  await shop.stop();
  await client.end();
  await made.drop();
}, PREPARATION_MS);

/** A search, the indexes that it is found by, and how many rows a scan may read at most. */
type Kind = readonly [what: string, search: string, indexes: readonly string[], atMost: number];

const FROM_A_TO_Z = Array.from('abcdefghijklmnopqrstuvwxyz');
const KINDS: readonly Kind[] = [
  ['a rare word, where names begin', 'kettle', [NAME, DICTIONARY], SIZE + 1],
  ['a rare word, inside names', 'brass', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['a word of every name', 'product', [NAME, DICTIONARY], SIZE + 1],
  ['a word of every fourth name, inside', 'steel', [NAME, PK, DICTIONARY], LOOKED_THROUGH],
  ['a word of every hundredth name, all far from the start', 'lantern', [NAME, PK, WORDS, DICTIONARY], LANTERNS],
  ['the beginning of a phrase', 'product 123', [NAME, DICTIONARY], SIZE + 1],
  ['the beginning of a phrase that few names have', 'product 12345', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['several words', 'linen 12345', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['several common words', 'product glass', [NAME, PK, DICTIONARY], LOOKED_THROUGH],
  ['one letter of every name', 'p', [NAME, DICTIONARY], SIZE + 1],
  ['one letter of every fourth name, inside', 'o', [NAME, PK, DICTIONARY], LOOKED_THROUGH],
  ['one letter of no name', 'x', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['one digit', '5', [NAME, PK, DICTIONARY], LOOKED_THROUGH],
  ['a typo in a word of every name', 'prodcut', [PK, DICTIONARY], LOOKED_THROUGH],
  ['a typo in a rare word', 'ketle', [PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['typos in several words', 'brss ketle', [PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['a word that there is none of', 'zzzz', [PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['numbers that there are none of', '99999999', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['a barcode', BARCODE, [BARCODES, NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['a UPC-A', '036000291452', [BARCODES, NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['a pk', '123456', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['signs of LIKE', '%_\\', [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['signs of a tsquery', `'p':* | !x & (b <-> c)`, [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['all letters', FROM_A_TO_Z.join(' '), [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  [
    '127 words',
    Array.from({ length: 127 }, (_, at) => String.fromCodePoint(0x4e00 + at)).join(' '),
    [NAME, PK, WORDS, DICTIONARY],
    LOOKED_THROUGH,
  ],
  ['26 words that are all mistyped', FROM_A_TO_Z.map((letter) => `prodc${letter}`).join(' '), [PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ['255 letters', 'q'.repeat(255), [NAME, PK, WORDS, DICTIONARY], LOOKED_THROUGH],
];

describe('a search is read from its indexes, the best first', () => {
  test.each(KINDS)('%s', async (_what, search, indexes, atMost) => {
    expect(await otherWays({ first: SIZE, filter: { search } }, indexes, atMost)).toEqual([]);
  });

  test.each(['kettle', 'brass', 'lantern', 'linen 12345', 'ketle', 'zzzz'])('%s, from the end', async (search) => {
    const { sequential, rows } = await wayOf({ last: SIZE, filter: { search } });
    expect([sequential, rows <= LANTERNS]).toEqual([[], true]);
  });

  test.each([
    ['product', [NAME, DICTIONARY], SIZE + 1],
    ['steel', [PK, DICTIONARY], LOOKED_THROUGH],
    ['prodcut', [PK, DICTIONARY], LOOKED_THROUGH],
    ['brass', [PK, WORDS, DICTIONARY], LOOKED_THROUGH],
  ])('%s, the second page', async (search, indexes, atMost) => {
    const { body } = await shop.graphql(PAGE, { first: SIZE, filter: { search } });
    const after = body.data.products.pageInfo.endCursor as string;
    expect(await otherWays({ first: SIZE, after, filter: { search } }, indexes, atMost)).toEqual([]);
  });
});

describe('a search in another order is looked for there, and then looked up', () => {
  const orders = [
    ['NAME', NAME],
    ['PRICE', PRICE],
    ['CREATED_AT', CREATED],
    ['UPDATED_AT', UPDATED],
  ] as const;

  for (const [field, index] of orders) {
    for (const direction of ['ASC', 'DESC']) {
      test(`${field} ${direction}`, async () => {
        const orderBy = { field, direction };
        expect(await otherWays({ first: SIZE, filter: { search: 'p' }, orderBy }, [index, DICTIONARY], LOOKED_THROUGH)).toEqual([]);
        expect(
          await otherWays({ first: SIZE, filter: { search: 'steel 77777' }, orderBy }, [index, WORDS, DICTIONARY], LOOKED_THROUGH),
        ).toEqual([]);
      });
    }
  }
});

describe('a filter has its index, whatever the order', () => {
  const filters = [
    ['text inside of names', { nameContains: '7777 s' }, TRIGRAMS, undefined],
    ['prices', { priceMin: '500.00', priceMax: '500.09' }, PRICE, 'PRICE'],
    ['since when they are there', { createdSince: '2026-01-12T13:46:00Z' }, CREATED, 'CREATED_AT'],
    ['since when they are as they are', { updatedSince: '2026-01-12T13:46:00Z' }, UPDATED, 'UPDATED_AT'],
  ] as const;
  const orders = [
    ['PK', PK],
    ['NAME', NAME],
    ['PRICE', PRICE],
    ['CREATED_AT', CREATED],
    ['UPDATED_AT', UPDATED],
  ] as const;

  for (const [what, filter, own, itsOrder] of filters) {
    test.each(orders)(`${what}, by %s`, async (field, index) => {
      const args = { first: SIZE, filter, orderBy: { field, direction: 'ASC' } };
      const found = field === itsOrder ? await otherWays(args, [own], SIZE + 1) : await otherWays(args, [index, own], LOOKED_THROUGH);
      expect(found).toEqual([]);
    });
  }

  test('barcodes', async () => {
    expect(await otherWays({ first: SIZE, filter: { barcodeIn: [BARCODE] }, orderBy: { field: 'NAME' } }, [BARCODES], 1)).toEqual([]);
  });
});

interface Way {
  indexes: string[];
  sequential: string[];
  /** What the scan that reads most does read. */
  rows: number;
}

/** How a page is read, by all of its statements. They are planned for their values each time. */
async function wayOf(args: object): Promise<Way> {
  const readings = await readingsOf(client, shop, () => shop.graphql(PAGE, { ...args }), READS, false);
  return {
    indexes: [...new Set(readings.flatMap(({ indexes }) => indexes))].toSorted(),
    sequential: readings.flatMap(({ sequential }) => sequential),
    rows: Math.max(...readings.map(({ rows }) => rows)),
  };
}

/** How a page is read, where it is not by these indexes and no other, or where a scan reads more rows than these. */
async function otherWays(args: object, indexes: readonly string[], atMost: number): Promise<Way[]> {
  const way = await wayOf(args);
  const isExpected = isDeepStrictEqual(way.indexes, [...new Set(indexes)].toSorted()) && way.sequential.length === 0 && way.rows <= atMost;
  return isExpected ? [] : [way];
}
