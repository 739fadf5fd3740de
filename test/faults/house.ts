import assert from 'node:assert/strict';
import pg from 'pg';
import { startServer, stopServer, type RunningServer } from '../support/process.ts';
import type { Cluster } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import type { World } from './fault.ts';
import { openCluster, settingsFor, type Place } from './place.ts';

/** A PostgreSQL server of its own and a server of the shop on it, of which the pool's size is known. */
export interface House {
  cluster: Cluster;
  server: RunningServer;
  place: Place;
  poolMax: number;
  /** Ends the server of the shop, which has to go well, and returns the lines of its log. */
  close(): Promise<Record<string, unknown>[]>;
}

const POOL_MAX = 4;
/** Longer than any answer may take, in ms: who gets none by then has found a fault. */
export const PATIENCE_MS = 30_000;
/** Lines of Node's inspector, which are not in the log. */
const OTHERS = /^Debugger |^For help, see: |^Waiting for the debugger/;

/** Makes both, with demo data. */
export async function openHouse(world: World, env: Record<string, string> = {}, settings: Record<string, string> = {}): Promise<House> {
  const cluster = await openCluster(world, settings);
  return { cluster, ...(await openOn(cluster, world.atEnd, env)) };
}

/** Starts one more server of the shop on the database. */
export async function openOn(cluster: Cluster, atEnd: World['atEnd'], env: Record<string, string> = {}): Promise<Omit<House, 'cluster'>> {
  const server = await startServer({ ...settingsFor(cluster), LOG_LEVEL: 'warn', DATABASE_POOL_MAX: String(POOL_MAX), ...env });
  atEnd(() => stopServer(server, 'SIGKILL'));
  return {
    server,
    place: { env: settingsFor(cluster), sql: (text) => cluster.sql(text) },
    poolMax: Number(env['DATABASE_POOL_MAX'] ?? POOL_MAX),
    async close() {
      const { code, stdout, stderr } = await stopServer(server);
      assert.equal(code, 0, `the server ended with ${code}: ${stderr}`);
      assert.match(stdout, /^.* listens on .*\n$/);
      const logged = stderr.split('\n').filter((line) => line !== '' && !OTHERS.test(line));
      return logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

/** Has these tables to itself until what this returns is called. */
export async function hold({ url }: Cluster, tables: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(`begin; lock table ${tables} in access exclusive mode`);
  return () => client.end();
}

/** How many statements of the shop wait for a lock just now. */
export async function waitingFor(cluster: Cluster): Promise<number> {
  const [row] = await cluster.sql(
    `select count(*)::int as waiting from pg_stat_activity where application_name = 'shopfront' and wait_event_type = 'Lock'`,
  );
  return Number(row?.['waiting']);
}

/** Throws where the pool has lost any of its places: as many statements as it may run have to be running at once. */
export async function assertPoolWhole({ cluster, server, poolMax }: House): Promise<void> {
  const release = await hold(cluster, 'product');
  try {
    const asked = Array.from({ length: poolMax * 2 }, (_, at) => search(server.url, `whole ${at}`));
    await until(async () => (await waitingFor(cluster)) === poolMax, `${poolMax} statements at once`);
    await release();
    await Promise.all(asked);
  } finally {
    await release();
  }
}

/** A read that goes by the pool, and takes long where the table does: no two are alike. */
export function search(url: string, text: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/graphql`, {
    signal: AbortSignal.timeout(PATIENCE_MS),
    ...init,
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: `{ products(filter: { search: "${text}" }) { nodes { pk } } }` }),
  });
}

/** Whether the server says that it can serve. */
export async function isReady(url: string): Promise<boolean> {
  return (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(PATIENCE_MS) })).status === 200;
}

/** Throws where anything is not answered as ever that needs no database. Returns how long the slowest took, in ms. */
export async function assertServedWithout(url: string): Promise<number> {
  const graphql = (query: string) => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const asked: [number, string, RequestInit?][] = [
    [200, '/livez'],
    [200, '/api/v2/shop/products', { method: 'OPTIONS' }],
    [404, '/nothing'],
    [405, '/token', { method: 'PUT' }],
    [401, '/users/me/', { headers: { Authorization: 'Bearer x.y.z' } }],
    [401, '/users/me/'],
    [422, '/api/v2/shop/products?page=x'],
    [422, '/token', { method: 'POST', body: new URLSearchParams({ username: 'alice' }) }],
    [400, '/graphql', graphql('{ products {')],
    [400, '/graphql', graphql('{ nothing }')],
    [200, '/graphql', graphql('{ __typename }')],
  ];
  let slowest = 0;
  for (const [expected, path, init] of asked) {
    const begun = performance.now();
    const answer = await fetch(url + path, { signal: AbortSignal.timeout(PATIENCE_MS), ...init });
    await answer.arrayBuffer();
    slowest = Math.max(slowest, performance.now() - begun);
    assert.equal(answer.status, expected, `${init?.method ?? 'GET'} ${path} is answered ${answer.status} without a database`);
  }
  return slowest;
}
