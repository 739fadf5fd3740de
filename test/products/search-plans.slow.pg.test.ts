import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { fill } from '../../bench/catalogue.ts';
import { MAX_SCANNED_ROWS } from '../../src/pagination/list-definition.ts';
import { makeDatabase, type TestDatabase } from '../support/databases.ts';
import { queryPlansOf } from '../support/readings.ts';
import { Shop } from '../support/shop.ts';

const PRODUCTS = 1_000_000;
/** Creating a million products takes longer than the timeout of a test. */
const PREPARATION_MS = 500_000;
const SIZE = 20;
/** All others are named `Product 123 Oak`, `… Steel`, `… Glass` or `… Linen`, by their pk. */
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
  await client.query(
    `update product set name = 'Kettle of Brass ' || pk where pk % ${PRODUCTS / KETTLES} = 1`,
  );
  // Adjacent, and at the end.
  await client.query(
    `update product set name = 'Paper Lantern ' || pk where pk > ${PRODUCTS - LANTERNS} and name not like 'Kettle%'`,
  );
  // As many words as in a catalogue of a million products.
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

/** A search, its indexes, and the maximum number of rows that a scan reads. */
type Kind = readonly [what: string, search: string, indexes: readonly string[], atMost: number];

const FROM_A_TO_Z = Array.from('abcdefghijklmnopqrstuvwxyz');
const KINDS: readonly Kind[] = [
  ['a rare word, at the start of names', 'kettle', [NAME, DICTIONARY], SIZE + 1],
  ['a rare word, inside names', 'brass', [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['a word of every name', 'product', [NAME, DICTIONARY], SIZE + 1],
  ['a word of every fourth name, inside', 'steel', [NAME, PK, DICTIONARY], MAX_SCANNED_ROWS],
  [
    'a word of every hundredth name, far from the start',
    'lantern',
    [NAME, PK, WORDS, DICTIONARY],
    LANTERNS,
  ],
  ['the start of a phrase', 'product 123', [NAME, DICTIONARY], SIZE + 1],
  [
    'the start of a phrase of few names',
    'product 12345',
    [NAME, PK, WORDS, DICTIONARY],
    MAX_SCANNED_ROWS,
  ],
  ['several words', 'linen 12345', [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['several common words', 'product glass', [NAME, PK, DICTIONARY], MAX_SCANNED_ROWS],
  ['one letter of every name', 'p', [NAME, DICTIONARY], SIZE + 1],
  ['one letter of every fourth name, inside', 'o', [NAME, PK, DICTIONARY], MAX_SCANNED_ROWS],
  ['one letter of no name', 'x', [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['one digit', '5', [NAME, PK, DICTIONARY], MAX_SCANNED_ROWS],
  ['a typo in a word of every name', 'prodcut', [PK, DICTIONARY], MAX_SCANNED_ROWS],
  ['a typo in a rare word', 'ketle', [PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['typos in several words', 'brss ketle', [PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['an unknown word', 'zzzz', [PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['unknown numbers', '99999999', [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['a barcode', BARCODE, [BARCODES, NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['a UPC-A', '036000291452', [BARCODES, NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['a pk', '123456', [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['signs of LIKE', '%_\\', [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['signs of a tsquery', `'p':* | !x & (b <-> c)`, [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ['all letters', FROM_A_TO_Z.join(' '), [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  [
    '127 words',
    Array.from({ length: 127 }, (_, at) => String.fromCodePoint(0x4e00 + at)).join(' '),
    [NAME, PK, WORDS, DICTIONARY],
    MAX_SCANNED_ROWS,
  ],
  [
    '26 mistyped words',
    FROM_A_TO_Z.map((letter) => `prodc${letter}`).join(' '),
    [PK, WORDS, DICTIONARY],
    MAX_SCANNED_ROWS,
  ],
  ['255 letters', 'q'.repeat(255), [NAME, PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
];

describe('a search is read from its indexes, the best rank first', () => {
  test.each(KINDS)('%s', async (_what, search, indexes, atMost) => {
    expect(await otherWays({ first: SIZE, filter: { search } }, indexes, atMost)).toEqual([]);
  });

  test.each(['kettle', 'brass', 'lantern', 'linen 12345', 'ketle', 'zzzz'])(
    '%s, from the end',
    async (search) => {
      const { sequential, rows } = await wayOf({ last: SIZE, filter: { search } });
      expect([sequential, rows <= LANTERNS]).toEqual([[], true]);
    },
  );

  test.each([
    ['product', [NAME, DICTIONARY], SIZE + 1],
    ['steel', [PK, DICTIONARY], MAX_SCANNED_ROWS],
    ['prodcut', [PK, DICTIONARY], MAX_SCANNED_ROWS],
    ['brass', [PK, WORDS, DICTIONARY], MAX_SCANNED_ROWS],
  ])('%s, the second page', async (search, indexes, atMost) => {
    const { body } = await shop.graphql(PAGE, { first: SIZE, filter: { search } });
    const after = body.data.products.pageInfo.endCursor as string;
    expect(await otherWays({ first: SIZE, after, filter: { search } }, indexes, atMost)).toEqual(
      [],
    );
  });
});

describe('a search in another order scans that order first, then looks up matches', () => {
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
        expect(
          await otherWays(
            { first: SIZE, filter: { search: 'p' }, orderBy },
            [index, DICTIONARY],
            MAX_SCANNED_ROWS,
          ),
        ).toEqual([]);
        expect(
          await otherWays(
            { first: SIZE, filter: { search: 'steel 77777' }, orderBy },
            [index, PK, WORDS, DICTIONARY],
            MAX_SCANNED_ROWS,
          ),
        ).toEqual([]);
      });
    }
  }
});

describe('a filter uses its index in any order', () => {
  const filters = [
    ['text inside names', { nameContains: '7777 s' }, TRIGRAMS, undefined],
    ['prices', { priceMin: '500.00', priceMax: '500.09' }, PRICE, 'PRICE'],
    ['creation time', { createdSince: '2026-01-12T13:46:00Z' }, CREATED, 'CREATED_AT'],
    ['update time', { updatedSince: '2026-01-12T13:46:00Z' }, UPDATED, 'UPDATED_AT'],
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
      const found =
        field === itsOrder
          ? await otherWays(args, [own], SIZE + 1)
          : await otherWays(args, [index, own, PK], MAX_SCANNED_ROWS);
      expect(found).toEqual([]);
    });
  }

  test('barcodes', async () => {
    expect(
      await otherWays(
        { first: SIZE, filter: { barcodeIn: [BARCODE] }, orderBy: { field: 'NAME' } },
        [BARCODES, PK],
        1,
      ),
    ).toEqual([]);
  });
});

interface Way {
  indexes: string[];
  sequential: string[];
  /** Returns the reads of the largest scan. */
  rows: number;
}

/** How the statements of a page read. They are planned for their values each time. */
async function wayOf(args: object): Promise<Way> {
  const readings = await queryPlansOf(
    client,
    shop,
    () => shop.graphql(PAGE, { ...args }),
    READS,
    false,
  );
  return {
    indexes: [...new Set(readings.flatMap(({ indexes }) => indexes))].toSorted(),
    sequential: readings.flatMap(({ sequential }) => sequential),
    rows: Math.max(...readings.map(({ rows }) => rows)),
  };
}

/** Returns the reads with other indexes than these, or with scans of more rows. */
async function otherWays(args: object, indexes: readonly string[], atMost: number): Promise<Way[]> {
  const way = await wayOf(args);
  const isExpected =
    isDeepStrictEqual(way.indexes, [...new Set(indexes)].toSorted()) &&
    way.sequential.length === 0 &&
    way.rows <= atMost;
  return isExpected ? [] : [way];
}
