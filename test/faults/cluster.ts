import assert from 'node:assert/strict';
import pg from 'pg';
import { stopServer, type RunningServer } from '../support/process.ts';
import type { Cluster } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import type { FaultContext } from './fault.ts';
import { openCluster, settingsFor, startShop, type ShopDatabase } from './place.ts';

/** A PostgreSQL server and a shop server on it, with the size of its pool. */
export interface ShopCluster {
  cluster: Cluster;
  server: RunningServer;
  database: ShopDatabase;
  poolMax: number;
  /** Stops the shop server, which must exit with 0. Returns its log lines. */
  close(): Promise<Record<string, unknown>[]>;
}

const POOL_MAX = 4;
/** Timeout of responses, in ms: longer than any may take. */
export const RESPONSE_TIMEOUT_MS = 30_000;
/** Output of Node's inspector, which is not part of the log. */
const INSPECTOR_LINES = /^Debugger |^For help, see: |^Waiting for the debugger/;

/** Starts both servers, with demo data. */
export async function openShopCluster(
  context: FaultContext,
  env: Record<string, string> = {},
): Promise<ShopCluster> {
  const cluster = await openCluster(context);
  const server = await startShop(context, {
    ...settingsFor(cluster),
    LOG_LEVEL: 'warn',
    DATABASE_POOL_MAX: String(POOL_MAX),
    ...env,
  });
  return {
    cluster,
    server,
    database: { env: settingsFor(cluster), sql: (text) => cluster.sql(text) },
    poolMax: Number(env['DATABASE_POOL_MAX'] ?? POOL_MAX),
    async close() {
      const { code, stdout, stderr } = await stopServer(server);
      assert.equal(code, 0, `the server exited with ${code}: ${stderr}`);
      assert.match(stdout, /^.* listens on .*\n$/);
      const logged = stderr
        .split('\n')
        .filter((line) => line !== '' && !INSPECTOR_LINES.test(line));
      return logged.map((line) => JSON.parse(line) as Record<string, unknown>);
    },
  };
}

/** Locks these tables exclusively. Returns a function that releases them. */
export async function lockTables({ url }: Cluster, tables: string): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(`begin; lock table ${tables} in access exclusive mode`);
  return () => client.end();
}

/** Returns the number of statements that wait for a lock. */
export async function countLockWaits(cluster: Cluster): Promise<number> {
  const [row] = await cluster.sql(
    `select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock'`,
  );
  return Number(row?.['waiting']);
}

/**
 * Throws if a pool connection is unusable: the pool must run its maximum number of statements at
 * once.
 */
export async function assertPoolUsable({ cluster, server, poolMax }: ShopCluster): Promise<void> {
  const release = await lockTables(cluster, 'product');
  try {
    const requests = Array.from({ length: poolMax * 2 }, (_, at) =>
      search(server.url, `whole ${at}`),
    );
    await until(
      async () => (await countLockWaits(cluster)) === poolMax,
      `${poolMax} concurrent statements`,
    );
    await release();
    await Promise.all(requests);
  } finally {
    await release();
  }
}

/** Sends a search, which uses the pool and waits for a lock on the table; each text is unique. */
export function search(url: string, text: string, init: RequestInit = {}): Promise<Response> {
  return fetch(`${url}/graphql`, {
    signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    ...init,
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query: `{ products(filter: { search: "${text}" }) { nodes { pk } } }` }),
  });
}

/** Returns whether the server is ready. */
export async function isReady(url: string): Promise<boolean> {
  return (
    (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS) })).status ===
    200
  );
}

/**
 * Throws if a request that needs no database gets another status than usual. Returns the longest
 * response time in ms.
 */
export async function assertServedWithoutDatabase(url: string): Promise<number> {
  const graphql = (query: string) => ({
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  const requests: [number, string, RequestInit?][] = [
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
  for (const [expected, path, init] of requests) {
    const begun = performance.now();
    const answer = await fetch(url + path, {
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
      ...init,
    });
    await answer.arrayBuffer();
    slowest = Math.max(slowest, performance.now() - begun);
    assert.equal(
      answer.status,
      expected,
      `${init?.method ?? 'GET'} ${path} returned ${answer.status} without a database`,
    );
  }
  return slowest;
}
