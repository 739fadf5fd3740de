import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { fill } from '../../bench/catalogue.ts';
import * as sessions from '../../src/auth/session.service.ts';
import { createAccessToken } from '../../src/auth/token.ts';
import { fingerprint, writeCursor } from '../../src/kit/cursor.ts';
import { OrderDirection, ProductOrderField } from '../../src/products/product.inputs.ts';
import { listingOf } from '../../src/products/product.listing.ts';
import { User } from '../../src/users/user.entity.ts';
import { makeDatabase, type TestDatabase } from '../support/databases.ts';
import { Shop, type Answer, type RequestOptions } from '../support/shop.ts';

const PRODUCTS = 1_000_000;
/** Making the million takes longer than a test may. */
const PREPARATION_MS = 300_000;
/** The row after the page, which tells that there is more, or what stands before the page in its range of 256. */
const BEYOND_PAGE = 257;
const COARSE_RANGES = 16;
const MIDDLE = 500_001;

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

/** A statement as the app sent it. */
interface Sent {
  text: string;
  values: readonly unknown[];
}

/** A node of a plan, as EXPLAIN tells of it. */
interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

/** How a plan reads, and how many rows at most on the way. */
interface Reading {
  indexes: string[];
  sequential: string[];
  sorts: number;
  rows: number;
}

let made: TestDatabase;
let client: pg.Client;
let shop: Shop;
let byToken: RequestOptions;
let byKey: RequestOptions;

beforeAll(async () => {
  made = await makeDatabase(`shopfront_plans_${process.pid}`);
  client = new pg.Client({ connectionString: made.env['DATABASE_URL'] });
  await client.connect();
  await fill(client, PRODUCTS);
  // No range of 256 is full, so that it takes all there is to find a page by its number.
  await client.query('delete from product where pk % 100 = 0');
  await client.query(`
    insert into session (sid, user_pk, key_hash, created_at, last_seen_at, expires_at)
    select gen_random_uuid(), pk, sha256(convert_to(username, 'UTF8')), now(), now(), now() + interval '1 day' from "user"`);
  await client.query(`update "user" set scopes = '{users:read}' where pk = 500`);
  await client.query('vacuum analyze');
  shop = await new Shop(made.env).start();
  const ctx = shop.context();
  const reader = await ctx.em.findOneOrFail(User, { pk: 500 });
  const { session, key } = await sessions.open(ctx, reader, null);
  byToken = { token: createAccessToken(ctx, { username: reader.username, sid: session.sid }) };
  byKey = { sessionKey: key };
}, PREPARATION_MS);

afterAll(async () => {
  await shop.stop();
  await client.end();
  await made.drop();
}, PREPARATION_MS);

test('explore', async () => {
  const show = async (label: string, ask: () => Promise<Answer>) => {
    const out = [label];
    for (const sent of await sentFor(ask)) {
      out.push('  ' + sent.text.replace(/\s+/g, ' ').slice(0, 260));
      for (const mode of ['custom', 'generic']) out.push('     ' + mode + ' ' + JSON.stringify(await read(sent, mode)));
    }
    console.info(out.join('\n'));
  };
  for (const field of Object.values(ProductOrderField).filter((f) => typeof f === 'string') as ProductOrderField[]) {
    for (const direction of [OrderDirection.ASC, OrderDirection.DESC]) {
      const cursor = await cursorAt(MIDDLE, field, direction);
      for (const args of [{ first: 20 }, { first: 20, after: cursor }, { last: 20 }, { last: 20, before: cursor }])
        await show(`${field} ${direction} ${Object.keys(args)}`, () => shop.graphql(PAGE, { ...args, orderBy: { field, direction } }));
      await show(`has prev ${field}`, () => shop.graphql(HAS_NEIGHBOUR, { first: 20, after: cursor, orderBy: { field, direction } }));
    }
  }
  for (const page of [1, 10_001, 90_001]) await show(`page ${page}`, () => shop.rest('GET', `${LIST}?page=${page}`));
  await show('limit', () => shop.rest('GET', `${LIST}?limit=1000&offset=700000`));
  await show('count', () => shop.graphql('{ products(first: 1) { totalCount } }'));
  await show('product', () => shop.graphql('{ product(pk: "500001") { name } }'));
  await show('product rest', () => shop.rest('GET', '/api/v1/shop/product/500003'));
  const { body } = await shop.graphql('{ product(pk: "700001") { barcode } }');
  await show('barcode', () => shop.graphql(BARCODE, { barcode: body.data.product.barcode }));
  await show('node', () => shop.graphql('{ product(pk: "500001") { name } b: product(pk: "3") { name } }'));
  await show('token', () => shop.rest('GET', '/users/me/', byToken));
  await show('key', () => shop.rest('GET', '/users/me/', byKey));
  await show('items', () => shop.rest('GET', '/users/me/items/', byKey));
  await show('blog', () => shop.rest('GET', '/blog', byKey));
  await show('me', () => shop.graphql('{ me { items(first: 2) { totalCount nodes { itemId } } blog(first: 2) { totalCount nodes { title creator { username } } } } }', {}, byToken));
  await show('many', () => shop.graphql('{ users(first: 20) { nodes { items(first: 2) { totalCount nodes { itemId } } blog(first: 2) { totalCount nodes { title } } } } }', {}, byToken));
  await show('blog page', () => shop.graphql('{ blog(first: 10) { nodes { title creator { username } } } }', {}, byToken));
}, 120_000);

/** The cursor of a product in this order, as the app would write it. */
async function cursorAt(pk: number, field: ProductOrderField, direction: OrderDirection): Promise<string> {
  const { name, order, descending, filter } = listingOf(undefined, { field, direction });
  const { rows } = await client.query<{ value: string }>(`select ${COLUMNS[field]}::text as value from product where pk = $1`, [pk]);
  const value = rows[0]?.value;
  return writeCursor(order, fingerprint(name, order, descending, filter), order.length > 1 ? [value, pk] : [pk]);
}

/** The statements that the app sends for a request that goes well. */
async function sentFor(ask: () => Promise<Answer>): Promise<Sent[]> {
  // As after a commit: how far the catalogue has come is asked again.
  shop.database.statements.commits++;
  const query: unknown = Reflect.get(pg.Client.prototype, 'query');
  const sent: Sent[] = [];
  pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]): unknown {
    const statement = Object(args[0]) as object;
    sent.push({ text: String(Reflect.get(statement, 'text')), values: (Reflect.get(statement, 'values') ?? args[1]) as unknown[] });
    return Reflect.apply(query as () => unknown, this, args);
  } as typeof pg.Client.prototype.query;
  try {
    const { status, body } = await ask();
    expect({ status, errors: body.errors }).toEqual({ status: 200, errors: undefined });
    return sent;
  } finally {
    Reflect.set(pg.Client.prototype, 'query', query);
  }
}

async function read({ text, values }: Sent, mode: string): Promise<Reading> {
  const literals = values.map((value) => (value === null || value === undefined ? 'null' : client.escapeLiteral(literal(value))));
  await client.query(`set plan_cache_mode = force_${mode}_plan`);
  await client.query({ text: `prepare explained as ${text}` });
  try {
    const { rows } = await client.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (analyze, format json) execute explained${literals.length > 0 ? `(${literals.join()})` : ''}`,
    );
    const nodes = nodesOf(rows[0]?.['QUERY PLAN'][0].Plan);
    const scans = nodes.filter((node) => /Scan/.test(node['Node Type']) && (node['Relation Name'] !== undefined || node['Index Name'] !== undefined));
    return {
      indexes: [...new Set(nodes.flatMap((node) => node['Index Name'] ?? []))].toSorted(),
      sequential: nodes.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name'] ?? ''),
      sorts: nodes.filter((node) => /Sort/.test(node['Node Type'])).length,
      rows: Math.max(0, ...scans.map((node) => (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)) * node['Actual Loops'])),
    };
  } finally {
    await client.query('deallocate explained');
  }
}

function nodesOf(node: PlanNode | undefined): PlanNode[] {
  return node ? [node, ...(node.Plans ?? []).flatMap(nodesOf)] : [];
}

function literal(value: unknown): string {
  if (value instanceof Date) return value.toISOString();
  if (Buffer.isBuffer(value)) return `\\x${value.toString('hex')}`;
  return Array.isArray(value) ? `{${value.join()}}` : String(value);
}
