import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase, type Database } from '../../src/database/database.ts';
import { readConfig } from '../../src/core/config.ts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '../support/jest.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { workerDatabase } from '../support/shop.ts';
import { until } from '../support/until.ts';

// A cancel request names a backend, not a statement: a delayed one cancels whatever runs by then.
// Here all connections pass a relay that holds cancel requests until `deliver` is called.

/** The code of a CancelRequest message (PostgreSQL, 55.7). */
const CANCEL_REQUEST = 80_877_102;
const LOCKED = { text: 'select name from scratch.held', values: [] };
/** Runs longer than a cancel request takes. */
const NEXT = { text: `select 'next' as name, pg_sleep(0.3)`, values: [] };
const BEGIN_MS = 100;
const ABORTED = 'This operation was aborted';

const direct = workerDatabase().DATABASE_URL;
let relay: Server;
let delayed: (() => void)[] = [];
let database: Database;
let other: pg.Client;

beforeAll(async () => {
  other = new pg.Client({ connectionString: direct });
  await other.connect();
  await other.query(
    `drop schema if exists scratch cascade; create schema scratch; create table scratch.held as select 'held' as name`,
  );
});

beforeEach(async () => {
  const url = new URL(direct ?? '');
  const { hostname, port } = url;
  relay = createServer((client) =>
    client.once('data', (first) => pass(client, first, hostname, Number(port))),
  );
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  url.hostname = '127.0.0.1';
  url.port = String((relay.address() as AddressInfo).port);
  const settings = {
    ...workerDatabase(),
    SIGNING_SECRET: TEST_SECRET,
    DATABASE_URL: String(url),
    DATABASE_POOL_MAX: '1',
  };
  database = await openDatabase(
    { ...readConfig(settings, () => undefined), databasePipeline: false },
    options,
    pino({ level: 'silent' }),
    true,
  );
  await other.query('begin; lock table scratch.held');
});

afterEach(async () => {
  await other.query('rollback');
  deliver();
  await database.close();
  relay.close();
});

afterAll(async () => {
  await other.query('drop schema scratch cascade');
  await other.end();
});

test('D23 a late cancel request cancels no other statement of its connection', async () => {
  const request = new AbortController();
  const cancelled = database.statements
    .read(LOCKED, false, request)
    .catch((error: Error) => error.name);
  await blocked();
  request.abort();
  expect(await cancelled).toBe('AbortError');
  await expectNextToRun(database.statements.read(NEXT).then((rows) => rows[0]?.['name']));
});

test('D23 a late cancel request cancels no other statement of an ORM connection', async () => {
  const aborted = new AbortController();
  const cancelled = database
    .fork(aborted.signal)
    .execute(LOCKED.text)
    .catch((error: Error) => error.message);
  await blocked();
  aborted.abort();
  expect(await cancelled).toBe(ABORTED);
  await expectNextToRun(nextOfOrm());
});

test('D23 a late cancel request cancels neither the ROLLBACK of its transaction nor the next transaction', async () => {
  const aborted = new AbortController();
  const cancelled = database.fork(aborted.signal).transactional((em) => em.execute(LOCKED.text));
  const ended = cancelled.catch((error: Error) => error.message);
  await blocked();
  aborted.abort();
  await expectNextToRun(nextOfOrm());
  expect(await ended).toBe(ABORTED);
});

/** Lets the cancelled statement end, and delivers its cancel request once the next has begun. */
async function expectNextToRun(next: Promise<unknown>): Promise<void> {
  const outcome = next.catch(String);
  await until(() => delayed.length > 0);
  await other.query('rollback');
  await setTimeout(BEGIN_MS);
  deliver();
  expect(await outcome).toBe('next');
}

async function nextOfOrm(): Promise<unknown> {
  return database
    .fork()
    .transactional(async (em) => (await em.execute<{ name: string }[]>(NEXT.text))[0]?.name);
}

async function blocked(): Promise<void> {
  await until(async () => {
    // A transaction keeps its first snapshot of the statistics.
    await other.query('select pg_stat_clear_snapshot()');
    const { rowCount } = await other.query(
      `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
    );
    return rowCount === 1;
  });
}

function deliver(): void {
  for (const send of delayed.splice(0)) send();
}

function pass(client: Socket, first: Buffer, host: string, port: number): void {
  const send = () => {
    const server = connect(port, host, () => {
      server.write(first);
      client.pipe(server).pipe(client);
    });
    for (const [one, peer] of [
      [client, server],
      [server, client],
    ] as const) {
      one.on('error', () => undefined);
      one.on('close', () => peer.destroy());
    }
  };
  if (first.length >= 8 && first.readInt32BE(4) === CANCEL_REQUEST) delayed.push(send);
  else send();
}
