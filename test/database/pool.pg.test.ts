import { afterEach, beforeEach, expect, test } from '../support/jest.ts';
import { ConnectionPool, type Lease } from '../../src/database/pool.ts';
import { useSecondSession } from '../support/second-session.ts';
import { workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

const connectionString = workerDatabase().DATABASE_URL;

let pool: ConnectionPool;
const other = useSecondSession();

beforeEach(() => {
  pool = new ConnectionPool({ connectionString, max: 2 });
});

afterEach(() => pool.close());

const PID = 'select pg_backend_pid() as pid';

test('a connection lost in a transaction frees its place in the pool without a release', async () => {
  const forgotten = [await pool.acquire(), await pool.acquire()];
  for (const lease of forgotten) {
    await lease.query('begin', []);
    await other.query('select pg_terminate_backend($1)', [lease.processID]);
  }
  await until(() => pool.counts.open === 0);
  await newPid();
  // A late release is harmless.
  for (const lease of forgotten) lease.release();
  expect(pool.counts).toMatchObject({ open: 1, idle: 1 });
});

test('a connection is closed after a failed text that may have begun a transaction, unless another text succeeds', async () => {
  for (const [rollback, isKept] of [
    ['', false],
    ['rollback', true],
  ] as const) {
    const lease = await pool.acquire();
    await expect(lease.query('begin; select 1/0; commit', [])).rejects.toThrow('division by zero');
    if (rollback) await lease.query(rollback, []);
    lease.release();
    expect((await newPid()) === lease.processID).toBe(isKept);
  }
});

test('a renewed pool reopens its connections: idle ones at once, busy ones after a grace period', async () => {
  const [idle, busy] = [await pool.acquire(), await pool.acquire()];
  idle.release();
  const held = busy.query('select pg_sleep(60)', []).catch((error: Error) => {
    busy.release();
    return error.message;
  });
  const renewed = pool.renew();
  await until(() => pool.counts.open === 1);
  expect([idle.processID, busy.processID]).not.toContain(await newPid());
  await renewed;
  expect(await held).toBe('Connection terminated unexpectedly');
  await until(() => pool.counts.open === 1);
  expect(pool.counts.idle).toBe(1);
});

test('a renewed pool keeps a connection that has finished its work and begun another', async () => {
  const lease = await pool.acquire();
  const renewed = pool.renew();
  lease.release();
  const again = await pool.acquire();
  await renewed;
  expect(await pidOf(again)).toBe(lease.processID);
  again.release();
});

async function newPid(): Promise<number | undefined> {
  const lease = await pool.acquire();
  const pid = await pidOf(lease);
  lease.release();
  return pid;
}

async function pidOf(lease: Lease): Promise<number | undefined> {
  return (await lease.query<{ pid: number }>(PID, [])).rows[0]?.pid;
}
