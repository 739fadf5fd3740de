import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { expectTimeout, retryUntilServed, type SendRequest } from '../support/late.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';
import { useSecondSession } from '../support/second-session.ts';
import { until } from '../support/until.ts';

// A statement waits for a lock for longer than the request timeout. Only the end of the request
// can cancel it, because the statement timeout of the database is ten minutes.

const DEADLINE_MS = 500;
const POOL = 3;

const shop = useShop(
  { REQUEST_TIMEOUT_MS: String(DEADLINE_MS), DATABASE_POOL_MAX: String(POOL) },
  { databaseStatementTimeoutMs: 600_000 },
);

const other = useSecondSession();
let user: User;

beforeEach(async () => {
  user = await shop.makeUser({
    username: 'ada',
    scopes: ['products:write', 'users:read', 'blog:write'],
  });
  await shop.makeProduct({ name: 'Lamp' });
});

afterEach(async () => {
  await other.query('rollback');
});

const graphql =
  (query: string): SendRequest =>
  () =>
    shop.graphql(query, {}, { as: user });
const product = () => ({ name: 'Chair', barcode: shop.newBarcode(), price: 1 });

/** A description, the table that the request waits for, and the request. */
const REQUESTS: [string, 'graphql' | 'rest', string, SendRequest][] = [
  ['a prepared read', 'graphql', 'product', graphql('{ products { nodes { name } } }')],
  [
    'a read with a filter',
    'graphql',
    'product',
    graphql('{ products(filter: { search: "lamp" }) { nodes { name } } }'),
  ],
  [
    'a list inside a list',
    'graphql',
    'item',
    graphql('{ users { nodes { items { nodes { itemId } } } } }'),
  ],
  [
    'a write in a transaction',
    'graphql',
    'blog_entry',
    graphql('mutation { createBlogEntry(input: { title: "a", body: "b" }) { id } }'),
  ],
  ['a page', 'rest', 'product', () => shop.rest('GET', '/api/v2/shop/products?page=1')],
  ['the whole list', 'rest', 'product', () => shop.rest('GET', '/api/v1/shop/products')],
  ['the blog', 'rest', 'blog_entry', () => shop.rest('GET', '/blog', { as: user })],
  [
    'a write',
    'rest',
    'product',
    () => shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product() }),
  ],
  [
    'a login',
    'rest',
    'user',
    () => shop.rest('POST', '/token', { form: { username: 'ada', password: PASSWORD } }),
  ],
];

describe('a table locked by another transaction', () => {
  test.each(REQUESTS)(
    'D23 %s by %s: 503 at the deadline, the statement is cancelled, and the next request succeeds',
    async (_what, api, table, send) => {
      const answer = await whileLocked(table, send);
      expect(answer.status).toBe(503);
      expectTimeout(shop, answer, api);
      await expectServed(send);
    },
  );

  test.each([
    ['reads with a filter', graphql('{ products(filter: { search: "lamp" }) { nodes { name } } }')],
    ['writes', () => shop.rest('POST', '/api/v1/shop/product/', { as: user, json: product() })],
  ] as [string, SendRequest][])(
    'D23 more concurrent requests than connections all time out: %s',
    async (_what, send) => {
      const answers = await whileLocked('product', () =>
        Promise.all(Array.from({ length: 8 * POOL }, send)),
      );
      // Requests without a connection may be rejected before the deadline.
      for (const answer of answers)
        expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '1']);
      await expectServed(send);
    },
  );
});

test('a client that leaves a waiting read is not logged as a timeout', async () => {
  const patient = await new Shop({ REQUEST_TIMEOUT_MS: '60000' }).start();
  const reader = await patient.makeUser();
  const client = new AbortController();
  try {
    await whileLocked('blog_entry', async () => {
      const headers = { Authorization: `Bearer ${patient.tokenOf(reader)}` };
      const read = fetch(`${patient.url}/blog`, { headers, signal: client.signal });
      await until(isWaiting, 'a waiting read');
      client.abort();
      await expect(read).rejects.toThrow('aborted');
    });
    expect(patient.logged.filter((line) => line.includes('request.timeout'))).toEqual([]);
  } finally {
    await patient.stop();
  }
});

/** Expects the request to succeed now, and more reads than the pool has connections. */
async function expectServed(send: SendRequest): Promise<void> {
  const reads = Array.from({ length: 2 * POOL }, (_, page) =>
    retryUntilServed(() => shop.rest('GET', `/api/v2/shop/products?page=${page + 1}`)),
  );
  for (const { status, body } of [...(await Promise.all(reads)), await retryUntilServed(send)]) {
    expect(status).toBeLessThan(300);
    expect(Array.isArray(body) ? undefined : body.errors).toBeUndefined();
  }
}

/** Sends a request while the table is locked, and waits until no statement waits for the lock. */
async function whileLocked<T>(table: string, send: () => Promise<T>): Promise<T> {
  await lock(table);
  try {
    const answer = await send();
    await nothingWaits();
    return answer;
  } finally {
    await other.query('rollback');
  }
}

async function lock(table: string): Promise<void> {
  await other.query(`begin; lock table "${table}" in access exclusive mode`);
}

// Time passes, because a pipelined connection may run the statement after the response and is then
// closed by a timer.
async function nothingWaits(): Promise<void> {
  await until(async () => !(await isWaiting()), 'the end of the statements that wait for a lock');
}

async function isWaiting(): Promise<boolean> {
  const { rows } = await other.query(
    `select from pg_stat_activity
     where datname = current_database() and application_name = 'shopfront' and wait_event_type = 'Lock'`,
  );
  return rows.length > 0;
}
