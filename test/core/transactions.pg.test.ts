import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';
import { useSecondSession } from '../support/second-session.ts';

// PostgreSQL rolls back a transaction because of others: here a trigger does it, on request.
// A sequence counts the attempts, because no rollback reverts it.

const shop = useShop();

const other = useSecondSession();
let user: User;

beforeEach(async () => {
  user = await shop.makeUser({ username: 'ada', scopes: ['products:write', 'blog:write'] });
});

afterEach(async () => {
  await other.query('drop schema if exists conflicts cascade');
});

const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const product = () => ({ name: 'Chair', barcode: shop.newBarcode(), price: 1 });
const create = (headers: Record<string, string> = {}) =>
  shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product(), headers });

/** A write, and the table to which it adds one row. */
const WRITES: [string, string, () => Promise<Answer>][] = [
  ['a product', 'product', () => create()],
  [
    'a product with an idempotency key',
    'product',
    () => create({ 'Idempotency-Key': shop.newBarcode() }),
  ],
  [
    'a product on GraphQL',
    'product',
    () => shop.graphql(CREATE, { input: product() }, { as: user }),
  ],
  [
    'a product on GraphQL with an idempotency key',
    'product',
    () =>
      shop.graphql(
        CREATE,
        { input: product() },
        { as: user, headers: { 'Idempotency-Key': shop.newBarcode() } },
      ),
  ],
  [
    'an item',
    'item',
    () => shop.graphql('mutation { addItem(itemId: "lamp") { itemId } }', {}, { as: user }),
  ],
  [
    'a blog entry',
    'blog_entry',
    () =>
      shop.graphql(
        'mutation { createBlogEntry(input: { title: "a", body: "b" }) { id } }',
        {},
        { as: user },
      ),
  ],
  [
    'a session',
    'session',
    () => shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } }),
  ],
];

describe.each([
  ['40001', 'a failed serialization'],
  ['40P01', 'a deadlock'],
])('%s, %s', (code) => {
  test.each(WRITES)(
    'C7 %s: retried at most three times, and stored once',
    async (_what, table, write) => {
      await failInserts(table, 3, code);
      const { status, body } = await write();
      expect([Math.floor(status / 100), body.errors]).toEqual([2, undefined]);
      expect([await attempts(), await count(table)]).toEqual([4, 1]);
    },
  );

  test.each(WRITES)(
    'C7 %s: then rejected with 503, and not stored',
    async (_what, table, write) => {
      await failInserts(table, 100, code);
      const { status, headers } = await write();
      expect([status, headers.get('Retry-After')]).toEqual([503, '1']);
      expect([await attempts(), await count(table)]).toEqual([4, 0]);
      expect((await (await dropTrigger(), write())).status).toBeLessThan(300);
    },
  );
});

test('C7 on GraphQL, a rejected operation differs from a partial one', async () => {
  await failInserts('item', 100, '40001');
  const whole = await shop.graphql(
    'mutation { addItem(itemId: "a") { itemId } }',
    {},
    { as: user },
  );
  const message = 'The service is not available at the moment';
  expect(whole.body).toEqual({
    errors: [{ message, extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }],
  });
  const part = await shop.graphql(
    'mutation ($input: ProductInput!) { product: createProduct(input: $input) { name } item: addItem(itemId: "b") { itemId } }',
    { input: product() },
    { as: user },
  );
  expect(part).toMatchObject({
    status: 200,
    body: { data: null, errors: [{ path: ['item'], extensions: { code: 'UNAVAILABLE' } }] },
  });
});

test.each([
  ['an internal error', `raise exception 'broken' using errcode = 'P0001'`, 500],
  [
    'a lost connection with an unknown result',
    'perform pg_terminate_backend(pg_backend_pid())',
    503,
  ],
])('C7 nothing else is retried: %s', async (_what, action, expected) => {
  for (const [table, write] of WRITES.slice(0, 2).map(([, name, ask]) => [name, ask] as const)) {
    await trigger(table, action);
    expect((await write()).status).toBe(expected);
    expect([await attempts(), await count(table)]).toEqual([1, 0]);
    await dropTrigger();
  }
});

/** Rolls back the first `times` inserts into the table. */
function failInserts(table: string, times: number, code: string): Promise<void> {
  return trigger(
    table,
    `if attempt <= ${times} then raise exception 'undone' using errcode = '${code}'; end if`,
  );
}

/** Counts the inserts into the table, and runs `action` in each. */
async function trigger(table: string, action: string): Promise<void> {
  await other.query(`
    create schema conflicts;
    create sequence conflicts.attempt;
    create function conflicts.act() returns trigger language plpgsql as $$
      declare attempt bigint := nextval('conflicts.attempt');
      begin ${action}; return new; end $$;
    create trigger acts before insert on "${table}" for each row execute function conflicts.act();`);
}

async function dropTrigger(): Promise<void> {
  await other.query('drop schema conflicts cascade');
}

async function attempts(): Promise<number> {
  const { rows } = await other.query<{ last: string }>(
    'select last_value as last from conflicts.attempt',
  );
  return Number(rows[0]?.last);
}

async function count(table: string): Promise<number> {
  const { rows } = await other.query<{ count: number }>(
    `select count(*)::int as count from "${table}"`,
  );
  return rows[0]?.count ?? -1;
}
