import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { expectLate, served, type Ask } from '../support/late.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { useSecondSession } from '../support/second-session.ts';
import { useStoppedClock } from '../support/clock.ts';
import { until } from '../support/until.ts';

// A statement that waits for a lock, longer than a request may take. Nothing but the request's own end can stop it here: the
// database's own limit on statements is minutes away.

const DEADLINE_MS = 500;
const POOL = 3;

// No shared comparison: each request waits for as long as it is let.
const shop = useShop({
  REQUEST_DEADLINE_MS: String(DEADLINE_MS),
  DATABASE_POOL_MAX: String(POOL),
  DATABASE_STATEMENT_TIMEOUT_MS: '600000',
});

const other = useSecondSession();
const clock = useStoppedClock();
/** What is answered while the time passes. */
const late = <T>(answers: Promise<T>): Promise<T> => clock.passUntil(answers, DEADLINE_MS);
let user: User;

beforeEach(async () => {
  user = await shop.makeUser({ username: 'ada', scopes: ['products:write', 'users:read', 'blog:write'] });
  await shop.makeProduct({ name: 'Lamp' });
});

afterEach(async () => {
  await other.query('rollback');
});

const graphql =
  (query: string): Ask =>
  () =>
    shop.graphql(query, {}, { as: user });
const product = () => ({ name: 'Chair', barcode: shop.newBarcode(), price: 1 });

/** What is asked, the table that it waits for, and how. */
const GRAPHQL: [string, string, Ask][] = [
  ['a hot read', 'product', graphql('{ products { nodes { name } } }')],
  ['a read of one', 'product', graphql('{ product(pk: 1) { name } }')],
  ['a read with a filter', 'product', graphql('{ products(filter: { search: "lamp" }) { nodes { name } } }')],
  [
    'several reads at once',
    'product',
    graphql('{ a: products(first: 1) { nodes { name } } b: products(last: 1) { totalCount nodes { pk } } }'),
  ],
  ['a list inside a list', 'item', graphql('{ users { nodes { items { nodes { itemId } } } } }')],
  [
    'a write of a product',
    'product',
    () => shop.graphql('mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }', { input: product() }, { as: user }),
  ],
  [
    'a write of an item',
    'item',
    () => shop.graphql('mutation ($id: String!) { addItem(itemId: $id) { itemId } }', { id: shop.newBarcode() }, { as: user }),
  ],
  ['a write in a transaction', 'blog_entry', graphql('mutation { createBlogEntry(input: { title: "a", body: "b" }) { id } }')],
  ['credentials', 'user', graphql('{ me { username } }')],
  ['a login', 'user', () => shop.graphql(`mutation { login(username: "ada", password: "${PASSWORD}") { accessToken } }`)],
  [
    'a login that cannot open a session',
    'session',
    () => shop.graphql(`mutation { login(username: "ada", password: "${PASSWORD}") { accessToken } }`),
  ],
];

const REST: [string, string, Ask][] = [
  ['a product', 'product', () => shop.rest('GET', '/api/v1/shop/product/1')],
  ['a page', 'product', () => shop.rest('GET', '/api/v2/shop/products?page=1')],
  ['the whole list', 'product', () => shop.rest('GET', '/api/v1/shop/products')],
  ['the users', 'user', () => shop.rest('GET', '/api/users', { as: user })],
  ['the blog', 'blog_entry', () => shop.rest('GET', '/blog', { as: user })],
  ["one's own items", 'item', () => shop.rest('GET', '/users/me/items/', { as: user })],
  ['a write', 'product', () => shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product() })],
  [
    'a write with an idempotency key',
    'product',
    () => shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product(), headers: { 'Idempotency-Key': shop.newBarcode() } }),
  ],
  ['a login', 'user', () => shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } })],
  ['a login that cannot open a session', 'session', () => shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } })],
];

describe('a table that somebody else has locked', () => {
  test.each(GRAPHQL)(
    'D23 GraphQL, %s: 503 TIMEOUT at the deadline, the statement is cancelled, and the next is answered',
    async (_what, table, ask) => {
      const answer = await whileLocked(table, ask);
      expect(answer.status).toBe(503);
      expectLate(shop, answer, 'graphql');
      await expectServed(ask);
    },
  );

  test.each(REST)(
    'D23 REST, %s: 503 with Retry-After at the deadline, the statement is cancelled, and the next is answered',
    async (_what, table, ask) => {
      const answer = await whileLocked(table, ask);
      expect(answer.status).toBe(503);
      expectLate(shop, answer, 'rest');
      await expectServed(ask);
    },
  );

  test('D23 what was refused is not done later', async () => {
    await whileLocked('product', () => shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product() }));
    await whileLocked('item', graphql('mutation { addItem(itemId: "lamp") { itemId } }'));
    await whileLocked('session', () => shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } }));
    expect(await shop.sql('select name from product')).toEqual([{ name: 'Lamp' }]);
    expect(await shop.sql('select * from item')).toEqual([]);
    expect(await shop.sql('select * from session')).toEqual([]);
  });

  test.each([
    ['hot reads', graphql('{ products { nodes { name } } }')],
    ['reads with a filter', graphql('{ products(filter: { search: "lamp" }) { nodes { name } } }')],
    ['reads by REST', () => shop.rest('GET', '/api/v2/shop/products')],
    ['writes', () => shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product() })],
  ] as [string, Ask][])('D23 many more of them than there are connections, at once: %s', async (_what, ask) => {
    const answers = await whileLocked('product', () => Promise.all(Array.from({ length: 8 * POOL }, ask)));
    // Those that did not get so far as a connection may be told before that there is none.
    for (const answer of answers) expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '1']);
    await expectServed(ask);
  });

  test('D23 many more of them than there are connections, one after another', async () => {
    const asks = [...GRAPHQL, ...REST].filter(([, table]) => table === 'product').map(([, , ask]) => ask);
    await lock('product');
    for (let time = 0; time < 4 * POOL; time++) {
      const answer = await late(asks[time % asks.length]?.() ?? Promise.reject(new Error('none')));
      expect(answer.status).toBe(503);
    }
    await nothingWaits();
    await other.query('rollback');
    for (const ask of asks) await expectServed(ask);
  });

  test('D23 a request that needs nothing of the table is answered meanwhile', async () => {
    await lock('product');
    const held = Promise.all(Array.from({ length: POOL - 1 }, graphql('{ products(filter: { search: "x" }) { nodes { name } } }')));
    expect((await shop.graphql('{ __typename }')).status).toBe(200);
    expect((await shop.rest('OPTIONS', '/api/v2/shop/products')).status).toBe(200);
    for (const answer of await late(held)) expectLate(shop, answer, 'graphql');
    await nothingWaits();
  });
});

/** The same is answered now, and so is more than the pool has connections for. */
async function expectServed(ask: Ask): Promise<void> {
  const reads = Array.from({ length: 2 * POOL }, (_, page) => served(() => shop.rest('GET', `/api/v2/shop/products?page=${page + 1}`)));
  for (const { status, body } of [...(await Promise.all(reads)), await served(ask)]) {
    expect(status).toBeLessThan(300);
    expect(Array.isArray(body) ? undefined : body.errors).toBeUndefined();
  }
}

/** What is answered while another transaction keeps everyone from the table, once nothing of ours waits for it any more. */
async function whileLocked<T>(table: string, ask: () => Promise<T>): Promise<T> {
  await lock(table);
  try {
    const answer = await late(ask());
    await nothingWaits();
    return answer;
  } finally {
    await other.query('rollback');
  }
}

async function lock(table: string): Promise<void> {
  await other.query(`begin; lock table "${table}" in access exclusive mode`);
}

// The time goes on: a connection that statements share may be asked only after the answer, and is closed by the clock.
async function nothingWaits(): Promise<void> {
  const ended = until(async () => {
    const { rows } = await other.query(
      `select from pg_stat_activity
       where datname = current_database() and application_name = 'shopfront' and wait_event_type = 'Lock'`,
    );
    return rows.length === 0;
  }, 'the end of the statements that wait for a lock');
  await late(ended);
}
