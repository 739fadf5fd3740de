import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, expect, jest, test } from '../support/jest.ts';
import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { withTimeLimit } from '../../src/core/abort.ts';
import { readConfig } from '../../src/core/config.ts';
import { openDatabase, type Database } from '../../src/database/database.ts';
import type { Statement, Statements } from '../../src/database/sql.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { workerDatabase } from '../support/shop.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';

/** REQUEST_TIMEOUT_MS, of which a statement on a replica may take a half. */
const TIMEOUT_MS = 1_000;
/** Maximum time to wait for a connection, in ms. */
const CONNECT_MS = 2_000;
/** Time until a failed replica is tried again, in ms. */
const PAUSE_MS = 5_000;
const REPLICA = [{ name: 'replica' }];
const PRIMARY = [{ name: 'shopfront' }];
const WHICH = raw(`select current_setting('application_name') as name`);
const NO_PORT = 1;

const { DATABASE_URL } = workerDatabase();
let proxy: TcpProxy;
let database: Database;
let replica: Statements;

// The replica is the same server, by a proxy and under another name.
beforeEach(async () => {
  const { port } = new URL(DATABASE_URL);
  proxy = await startTcpProxy(Number(port));
  await open(proxy.port);
});

afterEach(async () => {
  jest.restoreAllMocks();
  await database.close();
  proxy.close();
});

test('if the replica is down, reads run on the primary, and one of them tries the replica after a pause', async () => {
  expect(await replica.read(WHICH)).toEqual(REPLICA);
  proxy.turn(NO_PORT, true);
  for (let time = 0; time < 3; time++) expect(await replica.read(WHICH)).toEqual(PRIMARY);
  proxy.turn(Number(new URL(DATABASE_URL).port), false);
  expect(await replica.read(WHICH)).toEqual(PRIMARY);
  const now = performance.now();
  jest.spyOn(performance, 'now').mockReturnValue(now + PAUSE_MS);
  const both = await Promise.all([replica.read(WHICH), replica.read(WHICH)]);
  expect(both).toEqual([REPLICA, PRIMARY]);
  expect(await replica.read(WHICH)).toEqual(REPLICA);
});

test('a replica that accepts connections and does not respond delays only the first reads', async () => {
  const silent = await startSilentServer();
  await database.close();
  await open((silent.address() as AddressInfo).port);
  const begunAt = performance.now();
  const first = await Promise.all([1, 2, 3].map(() => replica.read(WHICH)));
  expect(first).toEqual([PRIMARY, PRIMARY, PRIMARY]);
  const connections = await connectionsOf(silent);
  for (let time = 0; time < 20; time++) expect(await replica.read(WHICH)).toEqual(PRIMARY);
  expect(performance.now() - begunAt).toBeLessThan(CONNECT_MS + TIMEOUT_MS);
  expect(await connectionsOf(silent)).toBe(connections);
  silent.close();
});

test('a statement that takes too long is cancelled, and runs on the primary', async () => {
  const slow = raw(
    `select name from (select current_setting('application_name') as name) as one, pg_sleep(case name when 'replica' then 60 else 0 end)`,
  );
  expect(await replica.read(slow)).toEqual(PRIMARY);
  const running = raw(
    `select count(*) from pg_stat_activity where query like '%pg_sleep(case%' and state = 'active' and pid <> pg_backend_pid()`,
  );
  await until(async () => (await database.statements.read(running))[0]?.['count'] === 0);
});

test('a request has two connections to the replica, and its own time limit begins with them', async () => {
  const begin = jest.fn();
  const request = { signal: new AbortController().signal, begin };
  const begunAt = performance.now();
  await Promise.all(
    [1, 2, 3].map(() =>
      withTimeLimit(request, 10_000, (part) =>
        replica.read(raw('select pg_sleep(0.3)'), false, part),
      ),
    ),
  );
  expect(performance.now() - begunAt).toBeGreaterThan(550);
  expect(begin).toHaveBeenCalledTimes(3);
});

test('a replica of whose connections all are in use delays a read, and completes the others', async () => {
  const long = [1, 2, 3].map(() =>
    replica.read(raw(`select current_setting('application_name') as name, pg_sleep(0.2)`)),
  );
  expect(await replica.read(WHICH)).toEqual(REPLICA);
  for (const rows of await Promise.all(long)) expect(rows[0]?.['name']).toBe('replica');
});

async function open(port: number): Promise<void> {
  const url = new URL(DATABASE_URL);
  url.hostname = '127.0.0.1';
  url.port = String(port);
  url.searchParams.set('application_name', 'replica');
  const config = readConfig(
    {
      DATABASE_URL,
      DATABASE_REPLICA_URL: url.href,
      SIGNING_SECRET: TEST_SECRET,
      REQUEST_TIMEOUT_MS: String(TIMEOUT_MS),
      DATABASE_POOL_MAX: '3',
    },
    () => undefined,
  );
  database = await openDatabase(config, options, pino({ level: 'silent' }));
  if (!database.replica) throw new Error('The database has no replica');
  ({ replica } = database);
}

/** Starts a server that accepts connections and sends nothing. */
async function startSilentServer(): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined).resume());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return server;
}

function connectionsOf(server: Server): Promise<number> {
  return new Promise((done, fail) =>
    server.getConnections((error, count) => (error ? fail(error) : done(count))),
  );
}

function raw(text: string): Statement {
  return { text, values: [] };
}
