import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { lookAfter, type Renew } from '../../src/database/pool-repair.ts';
import { workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const connectionString = workerDatabase()['DATABASE_URL'];

let pool: pg.Pool;
let renew: Renew;
let other: pg.Client;

beforeEach(async () => {
  pool = new pg.Pool({ connectionString, max: 2 });
  // As the ORM has it.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('error', () => undefined);
  renew = lookAfter(pool);
  other = new pg.Client({ connectionString });
  await other.connect();
});

afterEach(async () => {
  await Promise.all([pool.end(), other.end()]);
});

/** The time limit of a pool in ms. */
const WAIT_MS = 1_000;
const PID = 'select pg_backend_pid() as pid';

test('a connection that is lost in a transaction leaves its place in the pool, though nobody gives it back', async () => {
  const forgotten = [await pool.connect(), await pool.connect()];
  for (const client of forgotten) {
    await client.query('begin');
    await other.query('select pg_terminate_backend($1)', [await pidOf(client)]);
  }
  await until(() => pool.totalCount === 0);
  await pool.query(PID);
  // Whoever remembers it after all does no harm.
  for (const client of forgotten) client.release();
  expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
});

test('a connection that is lost and given back leaves its place once', async () => {
  const client = await pool.connect();
  const failed = client.query('select pg_terminate_backend(pg_backend_pid())').catch(() => client.release());
  await failed;
  await until(() => pool.totalCount === 0);
  await pool.query(PID);
  expect(pool.totalCount).toBe(1);
});

test('renewed, the pool opens its connections anew: idle ones at once, busy ones when they have had time to end', async () => {
  const [idle, busy] = [await pool.connect(), await pool.connect()];
  const before = [await pidOf(idle), await pidOf(busy)];
  idle.release();
  const held = busy.query('select pg_sleep(60)').catch((error: Error) => {
    busy.release();
    return error.message;
  });
  const renewed = renew();
  await until(() => pool.totalCount === 1);
  const { rows } = await pool.query<{ pid: number }>(PID);
  expect(before).not.toContain(rows[0]?.pid);
  await renewed;
  expect(await held).toBe('Connection terminated unexpectedly');
  await until(() => pool.totalCount === 1);
  expect(pool.idleCount).toBe(1);
});

test('renewed, the pool keeps a connection that has ended what it was at, and is at something else', async () => {
  const client = await pool.connect();
  const pid = await pidOf(client);
  const renewed = renew();
  client.release();
  const again = await pool.connect();
  await renewed;
  expect(await pidOf(again)).toBe(pid);
  again.release();
});

test('whoever waits for a connection goes on waiting while others get one, and is refused when nobody does', async () => {
  pool.options.max = 1;
  pool.options.connectionTimeoutMillis = WAIT_MS;
  const held = await pool.connect();
  const [first, second] = [pool.connect(), pool.connect()];
  await setTimeout(0.75 * WAIT_MS);
  held.release();
  const got = await first;
  await setTimeout(0.75 * WAIT_MS);
  got.release();
  const last = await second;
  await expect(pool.connect()).rejects.toThrow('timeout exceeded when trying to connect');
  last.release();
});

async function pidOf(client: pg.ClientBase): Promise<number | undefined> {
  return (await client.query<{ pid: number }>(PID)).rows[0]?.pid;
}
