import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { fill } from '../../bench/catalogue.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { fingerprint, writeCursor } from '../../src/pagination/cursor.ts';
import { OrderDirection, ProductOrderField } from '../../src/features/products/product.inputs.ts';
import { listDefinitionOf } from '../../src/features/products/product-lists.ts';
import { User } from '../../src/features/users/user.entity.ts';
import { makeDatabase, type TestDatabase } from '../support/databases.ts';
import { queryPlansOf, type QueryPlan } from '../support/readings.ts';
import { Shop, type Answer, type RequestOptions } from '../support/shop.ts';

const PRODUCTS = 1_000_000;
/** Creating a million products takes longer than the timeout of a test. */
const PREPARATION_MS = 300_000;
/** Primary keys of a range whose rows are counted. */
const RANGE = 16_384;
const SIZE = 20;
const MIDDLE = 500_001;
const DIRECTIONS = [OrderDirection.ASC, OrderDirection.DESC];

const PAGE = `query ($first: Int, $after: String, $last: Int, $before: String, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy) { nodes { pk name price } }
}`;
const HAS_NEIGHBOUR = `query ($first: Int, $after: String, $orderBy: ProductOrder) {
  products(first: $first, after: $after, orderBy: $orderBy) { nodes { pk } pageInfo { hasPreviousPage } }
}`;
const BARCODE = 'query ($barcode: EAN13!) { productByBarcode(barcode: $barcode) { pk name } }';
const LIST = '/api/v2/shop/products';

const INDEXES: Record<ProductOrderField, string> = {
  [ProductOrderField.PK]: 'product_pkey',
  [ProductOrderField.NAME]: 'product_name_key_pk_index',
  [ProductOrderField.PRICE]: 'product_price_pk_index',
  [ProductOrderField.CREATED_AT]: 'product_created_at_pk_index',
  [ProductOrderField.UPDATED_AT]: 'product_updated_at_pk_index',
};
const COLUMNS: Record<ProductOrderField, string> = {
  [ProductOrderField.PK]: 'pk',
  [ProductOrderField.NAME]: 'name_key',
  [ProductOrderField.PRICE]: 'price',
  [ProductOrderField.CREATED_AT]: 'created_at',
  [ProductOrderField.UPDATED_AT]: 'updated_at',
};

/** The expected reads of a table, and their indexes. */
interface Expected {
  of: RegExp;
  indexes: string[];
  atMost: number;
}

let made: TestDatabase;
let client: pg.Client;
let shop: Shop;
let byToken: RequestOptions;

beforeAll(async () => {
  made = await makeDatabase(`shopfront_compiled_operations_${process.pid}`);
  client = new pg.Client({ connectionString: made.env['DATABASE_URL'] });
  await client.connect();
  await fill(client, PRODUCTS);
  // No range of 256 is full, so that finding a page by its number needs every step.
  await client.query('delete from product where pk % 100 = 0');
  await client.query(`
    insert into session (sid, user_pk, key_hash, created_at, last_seen_at, expires_at)
    select gen_random_uuid(), pk, sha256(convert_to(username, 'UTF8')), now(), now(), now() + interval '1 day' from "user"`);
  await client.query(`update "user" set scopes = '{users:read}' where pk = 500`);
  await client.query('vacuum analyze');
  shop = await new Shop(made.env).start();
  const ctx = shop.context();
  const reader = await ctx.em.findOneOrFail(User, { pk: 500 });
  const { session } = await sessions.open(ctx, reader, null);
  byToken = { token: createAccessToken(ctx, { username: reader.username, sid: session.sid }) };
  // The first query of its kind runs by the resolvers, the others by its compiled operation.
  await shop.graphql(PAGE);
  await shop.graphql(HAS_NEIGHBOUR);
}, PREPARATION_MS);

afterAll(async () => {
  await shop.stop();
  await client.end();
  await made.drop();
}, PREPARATION_MS);

describe('a page by cursor is read from the index of its order, with one extra row', () => {
  const bounds = [
    { first: SIZE },
    { last: SIZE },
    { first: SIZE, after: MIDDLE },
    { last: SIZE, before: MIDDLE },
  ];
  const pages = Object.values(ProductOrderField).flatMap((field) =>
    DIRECTIONS.flatMap((direction) => bounds.map((bound) => ({ field, direction, bound }))),
  );

  test.each(pages)('$field $direction $bound', async ({ field, direction, bound }) => {
    const args = await withCursors(bound, field, direction);
    expect(
      await otherReadings(() => shop.graphql(PAGE, { ...args, orderBy: { field, direction } }), {
        of: /from "product"/,
        indexes: [INDEXES[field]],
        atMost: SIZE + 1,
      }),
    ).toEqual([]);
  });
});

describe('a page by number is read from the start of its range, at any depth', () => {
  const pages = [
    ['page=1', 10],
    ['page=10001', 10],
    ['page=90001', 10],
    ['limit=1000&offset=700000', 1_000],
  ] as const;

  test.each(pages)('%s', async (query, size) => {
    const found = await readings(() => shop.rest('GET', `${LIST}?${query}`), /from "product"/);
    for (const { sorts: _few, rows, ...way } of found) {
      expect(way).toEqual({ indexes: ['product_pkey'], sequential: [] });
      expect(rows).toBeLessThanOrEqual(size + RANGE);
    }
  });
});

describe('a lookup by key uses its index', () => {
  test.each([
    ['GraphQL', () => shop.graphql('{ product(pk: "500001") { name } }'), 1],
    [
      'GraphQL, two at once',
      () => shop.graphql('{ a: product(pk: "500001") { name } b: product(pk: "3") { name } }'),
      2,
    ],
    ['REST', () => shop.rest('GET', '/api/v1/shop/product/500003'), 1],
  ])('a product by pk, %s', async (_endpoint, request, atMost) => {
    expect(
      await otherReadings(request, { of: /from "product"/, indexes: ['product_pkey'], atMost }),
    ).toEqual([]);
  });

  test('a product by its barcode', async () => {
    const { body } = await shop.rest('GET', '/api/v1/shop/product/700001');
    expect(
      await otherReadings(() => shop.graphql(BARCODE, { barcode: body.barcode }), {
        of: /from "product"/,
        indexes: ['product_barcode_unique'],
        atMost: 1,
      }),
    ).toEqual([]);
  });
});

describe('data of a user is read by the user, in its order', () => {
  const own = (list: string) => () => shop.graphql(`{ me { ${list} } }`, {}, byToken);
  const items = { of: /from "item"/, indexes: ['item_owner_pk_pk_index'] };

  // At present item (owner_pk, pk) has no index: each page reads and sorts all items of the user.
  test('a page of the items of one user', async () => {
    expect(
      await otherReadings(own('items(first: 2) { nodes { itemId } }'), { ...items, atMost: 3 }),
    ).toEqual([]);
  });

  test('all items of one user', async () => {
    // Sorting so few is as fast as reading them in order.
    for (const { indexes, sequential, rows } of await readings(
      () => shop.rest('GET', '/users/me/items/', byToken),
      items.of,
    )) {
      expect({ indexes, sequential, rows }).toEqual({
        indexes: [expect.stringMatching(/^item_owner_pk_/)],
        sequential: [],
        rows: 5,
      });
    }
  });
});

/** Replaces the pk of a product by its cursor. */
async function withCursors(
  { after, before, ...size }: { first?: number; last?: number; after?: number; before?: number },
  field: ProductOrderField,
  direction: OrderDirection,
): Promise<Record<string, unknown>> {
  return {
    ...size,
    ...(after !== undefined && { after: await cursorOf(after, field, direction) }),
    ...(before !== undefined && { before: await cursorOf(before, field, direction) }),
  };
}

/** Returns the cursor of a product in this order. */
async function cursorOf(
  pk: number,
  field: ProductOrderField,
  direction: OrderDirection,
): Promise<string> {
  const list = listDefinitionOf(undefined, { field, direction });
  const { rows } = await client.query<{ value: unknown }>(
    `select ${COLUMNS[field]} as value from product where pk = $1`,
    [pk],
  );
  return writeCursor(fingerprint(list), list.order.length > 1 ? [rows[0]?.value, pk] : [pk]);
}

/** Returns the reads that use other indexes or another order, or read more rows. */
async function otherReadings(
  request: () => Promise<Answer>,
  { of, indexes, atMost }: Expected,
): Promise<QueryPlan[]> {
  const expected = { indexes, sequential: [], sorts: [] };
  return (await readings(request, of)).filter(
    ({ rows, ...way }) => rows > atMost || !isDeepStrictEqual(way, expected),
  );
}

function readings(request: () => Promise<Answer>, of: RegExp): Promise<QueryPlan[]> {
  return queryPlansOf(client, shop, request, of);
}
