import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { makeStandby, type Cluster } from '../support/postgresql.ts';
import { startServer, stopServer } from '../support/process.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import type { Fault, FaultContext } from './fault.ts';
import { openCluster, settingsFor } from './place.ts';
import {
  send,
  bearer,
  create,
  newBarcode,
  page,
  percentile,
  post,
  product,
  parseProduct,
  signIn,
  WRITER,
} from './shopper.ts';

/** The configured maximum lag, in ms. */
const MAX_LAG_MS = 1_000;
/** Time in ms for which replicas serve the catalogue without the primary. */
const WITHOUT_PRIMARY_MS = 8_000;
/** Tolerance in ms between a response and the clock reading here. */
const SLACK_MS = 500;

export const replicas: Fault = {
  name: 'replicas',
  promise:
    'Replicas serve reads of the catalogue within their maximum lag, also if a URL leads to several servers. Callers with a write scope read their own writes. A replica that lags, hangs or dies is excluded without a failed request. Without the primary, replicas serve the catalogue to clients without credentials for the configured time; all other requests get 503.',
  on: ['postgresql'],
  async run(context) {
    const { directory, short, atEnd } = context;
    const primary = await openCluster(context, {
      max_connections: '200',
      synchronous_commit: 'on',
    });
    const standbys = [
      await makeStandby(primary, join(directory, 'first')),
      await makeStandby(primary, join(directory, 'second')),
    ] as const;
    for (const standby of standbys) atEnd(() => standby.stop('immediate'));
    const env = {
      ...settingsFor(primary),
      DATABASE_REPLICA_URLS: standbys.map(({ url }) => url).join(),
      DATABASE_REPLICA_MAX_LAG_MS: String(MAX_LAG_MS),
      DATABASE_READS_WITHOUT_PRIMARY_SECONDS: String(WITHOUT_PRIMARY_MS / 1000),
      LOG_LEVEL: 'silent',
    };
    const [here, there] = [await startServer(env), await startServer(env)];
    for (const server of [here, there]) atEnd(() => stopServer(server, 'SIGKILL'));
    const token = await bearer(here.url);

    for (const standby of standbys)
      await until(() => isRead(here.url, standby), 'a read from each replica');
    await assertCommitsNothing(standbys);
    const back = await readBack(here.url, there.url, token, short ? 50 : 1_000);
    const paused = await pauseReplay(primary, standbys, here.url, token, short ? 2_000 : 10_000);
    const balanced = await balance(context, primary, standbys, env, token);
    const killed = await killReplica(standbys[1], here.url, token, short ? 3_000 : 20_000);
    const alone = await losePrimary(primary, here.url, token);
    return {
      'writes read back by their writer': back,
      ...paused,
      ...balanced,
      ...killed,
      ...alone,
    };
  },
};

let nextRead = 0;

/** Returns whether uncached reads are served by this replica. */
async function isRead(url: string, standby: Cluster): Promise<boolean> {
  const [begun] = await standby.sql('select clock_timestamp()::text as at');
  for (let read = 0; read < 10; read++) await product(url, 1 + (nextRead++ % 1_000));
  const [row] = await standby.sql(
    `select count(*)::int as count from pg_stat_activity
      where application_name = 'shopfront' and query like '%from "product" where%' and query_start > '${String(begun?.['at'])}'`,
  );
  return Number(row?.['count']) > 0;
}

async function assertCommitsNothing(standbys: readonly Cluster[]): Promise<void> {
  for (const standby of standbys) {
    const [row] = await standby.sql(`select count(*)::int as count from "user"`);
    assert.ok(Number(row?.['count']) > 0);
    await assert.rejects(standby.sql(`insert into "user" (username) values ('x')`), /read-only/);
  }
}

/**
 * Returns how many writes were read back at once by their writer, on the same and on another
 * instance.
 */
async function readBack(
  here: string,
  there: string,
  token: Record<string, string>,
  times: number,
): Promise<string> {
  let found = 0;
  for (let time = 0; time < times; time++) {
    const made = await create(here, token, newBarcode());
    assert.equal(made.status, 201, made.text);
    const { pk } = parseProduct(made);
    const url = time % 2 ? here : there;
    const [read, list] = await Promise.all([product(url, pk, token), page(url, '?limit=1', token)]);
    assert.deepEqual([read.status, parseProduct(read).pk], [200, pk]);
    assert.equal((JSON.parse(list.text) as { count: number }).count, 1_200 + time + 1);
    found++;
  }
  return `${found} of ${times}`;
}

/**
 * Pauses replay on both replicas while the catalogue changes: no response may exceed the maximum
 * lag.
 */
async function pauseReplay(
  primary: Cluster,
  standbys: readonly Cluster[],
  url: string,
  token: Record<string, string>,
  forMs: number,
): Promise<Record<string, string | number>> {
  for (const standby of standbys)
    await until(() => isRead(url, standby), 'a read from each replica');
  for (const standby of standbys) await standby.sql('select pg_wal_replay_pause()');
  const pausedAt = performance.now();
  const old = await cachedWhilePaused(url, token);
  const { reads, oldest } = await readWhileWriting(primary, url, token, pausedAt + forMs);
  for (const standby of standbys) assert.equal(await isRead(url, standby), false);
  for (const standby of standbys) await standby.sql('select pg_wal_replay_resume()');
  for (const standby of standbys)
    await until(() => isRead(url, standby), 'a read from the resumed replica');
  return {
    'first reads served by a paused replica within its maximum lag': old,
    'stale cached responses': 0,
    'reads while the replay was paused': reads,
    'oldest answer': `${Math.round(oldest)} ms`,
    'to be no older than': `${MAX_LAG_MS} ms`,
  };
}

/**
 * Reads by a URL that leads to both replicas in turn, while one of them replays nothing: no response
 * may exceed the maximum lag.
 */
async function balance(
  { short, atEnd }: FaultContext,
  primary: Cluster,
  standbys: readonly Cluster[],
  env: Readonly<Record<string, string>>,
  token: Record<string, string>,
): Promise<Record<string, string | number>> {
  const [first, second] = standbys;
  assert.ok(first && second);
  const proxy = await startTcpProxy(first.port, second.port);
  atEnd(() => proxy.close());
  const server = await startServer({
    ...env,
    DATABASE_REPLICA_URLS: first.url.replace(String(first.port), String(proxy.port)),
  });
  atEnd(() => stopServer(server, 'SIGKILL'));
  await second.sql('select pg_wal_replay_pause()');
  const end = performance.now() + (short ? 3_000 : 20_000);
  const { reads, oldest } = await readWhileWriting(primary, server.url, token, end);
  await second.sql('select pg_wal_replay_resume()');
  await stopServer(server, 'SIGTERM');
  return {
    'reads by a URL of two replicas, one of them paused': reads,
    'oldest of these answers': `${Math.round(oldest)} ms`,
  };
}

/**
 * Creates products and counts them by other requests. Returns the number of these, and the maximum
 * age of their responses in ms, which is at most the maximum lag.
 */
async function readWhileWriting(
  primary: Cluster,
  url: string,
  token: Record<string, string>,
  end: number,
): Promise<{ reads: number; oldest: number }> {
  /** Latest commit time of each number of products. */
  const committed: { at: number; count: number }[] = [];
  const [row] = await primary.sql('select count(*)::int as count from product');
  let count = Number(row?.['count']);
  committed.push({ at: performance.now(), count });
  const over = new AbortController();
  const writer = (async () => {
    while (!over.signal.aborted) {
      assert.equal((await create(url, token, newBarcode())).status, 201);
      committed.push({ at: performance.now(), count: ++count });
      await setTimeout(20);
    }
  })();
  let reads = 0;
  let oldest = 0;
  while (performance.now() < end) {
    const at = performance.now();
    // Each request is unique, so that none is cached.
    const answer = await page(url, `?limit=1&offset=${nextRead++ % 1_000}`);
    assert.equal(answer.status, 200, answer.text);
    const seen = (JSON.parse(answer.text) as { count: number }).count;
    const next = committed.find((commit) => commit.count > seen);
    oldest = Math.max(oldest, next ? at - next.at : 0);
    reads++;
  }
  assert.ok(oldest <= MAX_LAG_MS + SLACK_MS, `an answer was ${oldest} ms old`);
  over.abort();
  await writer;
  return { reads, oldest };
}

/**
 * A replica may return stale data; the response cache must not store it. Returns the number of
 * stale first responses.
 */
async function cachedWhilePaused(url: string, token: Record<string, string>): Promise<number> {
  const totals = async (query: string): Promise<number> =>
    (JSON.parse((await page(url, query)).text) as { count: number }).count;
  const made = await create(url, token, newBarcode());
  assert.equal(made.status, 201, made.text);
  const { count } = JSON.parse((await page(url, '?limit=50', token)).text) as { count: number };
  let old = 0;
  for (let limit = 51; limit < 60; limit++) {
    // Responses are cached from the second request on.
    if ((await totals(`?limit=${limit}`)) < count) old++;
    for (let time = 0; time < 3; time++)
      assert.equal(await totals(`?limit=${limit}`), count, 'a cached response is stale');
  }
  assert.ok(old > 0, 'no paused replica served a read');
  return old;
}

/** Freezes and then kills a replica under load: no request fails. */
async function killReplica(
  standby: Cluster,
  url: string,
  token: Record<string, string>,
  forMs: number,
): Promise<Record<string, string | number>> {
  const times: number[] = [];
  const failed: string[] = [];
  let acknowledged = 0;
  const end = performance.now() + forMs;
  const reading = Array.from({ length: 8 }, async () => {
    while (performance.now() < end) {
      const at = performance.now();
      const answer = await send(`${url}/api/v1/shop/product/${1 + (nextRead++ % 1_000)}`);
      times.push(performance.now() - at);
      if (answer.status !== 200) failed.push(`${answer.status} ${answer.text}`);
    }
  });
  const writing = (async () => {
    while (performance.now() < end) {
      const answer = await create(url, token, newBarcode());
      if (answer.status === 201) acknowledged++;
      else failed.push(`${answer.status} ${answer.text}`);
    }
  })();
  await setTimeout(forMs / 4);
  await standby.signal('SIGSTOP');
  await setTimeout(forMs / 2);
  await standby.signal('SIGKILL');
  await Promise.all([...reading, writing]);
  assert.deepEqual(failed.slice(0, 10), []);
  await standby.stop('immediate');
  await standby.start();
  await until(() => isRead(url, standby), 'a read from the restarted replica');
  return {
    'requests while one froze and died': times.length + acknowledged,
    'of these failed': failed.length,
    'reads p99': percentile(times, 0.99),
    'slowest read': percentile(times, 1),
  };
}

/**
 * Kills the primary: the replicas serve the catalogue without credentials for the configured time,
 * and nothing else.
 */
async function losePrimary(
  primary: Cluster,
  url: string,
  token: Record<string, string>,
): Promise<Record<string, string | number>> {
  const readiness = async () => {
    const { status, text } = await send(`${url}/readyz`);
    return `${status} ${text}`;
  };
  const made = await create(url, token, newBarcode());
  const { pk } = parseProduct(made);
  // Nothing tells whether a replica lacks the last commit.
  await setTimeout(MAX_LAG_MS);
  await primary.stop('immediate');
  const stoppedAt = performance.now();
  await until(async () => (await readiness()) === '200 {"status":"read-only"}', 'read-only');
  const graphql = (query: string, headers: Record<string, string> = {}) =>
    post(`${url}/graphql`, { query }, headers);
  let reads = 0;
  while (performance.now() - stoppedAt < WITHOUT_PRIMARY_MS / 2) {
    const [read, list, whole, query] = await Promise.all([
      product(url, pk),
      // Repeated, as the response cache stores them.
      page(url, '?limit=3'),
      send(`${url}/api/v1/shop/products`),
      graphql(`{ product(pk: "${pk}") { name } products(first: 2) { totalCount } }`),
    ]);
    for (const answer of [read, list, whole, query]) {
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.headers.get('age') ?? '', /^[1-9]$/);
    }
    assert.equal(parseProduct(read).pk, pk);
    assert.doesNotMatch(query.text, /"errors"/);
    reads += 4;
    await setTimeout(50);
  }
  const rejected = [
    await product(url, pk, token),
    await create(url, token, newBarcode()),
    await graphql('{ me { username } }', token),
    await signIn(url, { ...WRITER, password: 'wrong' }),
  ];
  assert.deepEqual(
    rejected.map(({ status }) => status),
    rejected.map(() => 503),
  );
  const { text } = await graphql(
    'mutation { login(username: "alice", password: "wrong") { __typename } }',
  );
  assert.match(text, /"code":"UNAVAILABLE"/);
  await until(async () => (await product(url, pk)).status === 503, 'the end of these reads');
  const servedMs = performance.now() - stoppedAt;
  assert.ok(servedMs >= WITHOUT_PRIMARY_MS - SLACK_MS, `served for ${servedMs} ms`);
  assert.equal(await readiness(), '503 {"status":"unavailable"}');
  await primary.start();
  await until(async () => (await readiness()) === '200 {"status":"ok"}', 'the primary');
  const answer = await product(url, pk, token);
  assert.deepEqual([answer.status, answer.headers.get('age')], [200, null]);
  return {
    'reads served without the primary': reads,
    'these ended after': `${Math.round(servedMs)} ms, of ${WITHOUT_PRIMARY_MS} ms`,
  };
}
