import { setTimeout } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '../support/jest.ts';
import pg from 'pg';
import { repairPool, type Renew } from '../../src/database/pool-repair.ts';
import { workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const connectionString = workerDatabase().DATABASE_URL;

let pool: pg.Pool;
let renew: Renew;
let other: pg.Client;

beforeEach(async () => {
  pool = new pg.Pool({ connectionString, max: 2 });
  // As in the ORM.
  pool.on('connect', (client) => client.on('error', () => undefined));
  pool.on('error', () => undefined);
  renew = repairPool(pool);
  other = new pg.Client({ connectionString });
  await other.connect();
});

afterEach(async () => {
  await Promise.all([pool.end(), other.end()]);
});

/** Timeout of a pool in ms. */
const WAIT_MS = 1_000;
const PID = 'select pg_backend_pid() as pid';

test('a connection lost in a transaction frees its place in the pool without a release', async () => {
  const forgotten = [await pool.connect(), await pool.connect()];
  for (const client of forgotten) {
    await client.query('begin');
    await other.query('select pg_terminate_backend($1)', [await pidOf(client)]);
  }
  await until(() => pool.totalCount === 0);
  await pool.query(PID);
  // A late release is harmless.
  for (const client of forgotten) client.release();
  expect([pool.totalCount, pool.idleCount]).toEqual([1, 1]);
});

test('a connection lost and released frees its place once', async () => {
  const client = await pool.connect();
  const failed = client
    .query('select pg_terminate_backend(pg_backend_pid())')
    .catch(() => client.release());
  await failed;
  await until(() => pool.totalCount === 0);
  await pool.query(PID);
  expect(pool.totalCount).toBe(1);
});

test('a renewed pool reopens its connections: idle ones at once, busy ones after a grace period', async () => {
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

test('a renewed pool keeps a connection that has finished its work and begun another', async () => {
  const client = await pool.connect();
  const pid = await pidOf(client);
  const renewed = renew();
  client.release();
  const again = await pool.connect();
  await renewed;
  expect(await pidOf(again)).toBe(pid);
  again.release();
});

test('a request for a connection waits while others get one, and is rejected when none does', async () => {
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
