import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { makeStandby, type Cluster } from '../support/postgresql.ts';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { openCluster, settingsFor } from './place.ts';
import { ask, bearer, create, newBarcode, page, percentile, product, sold } from './shopper.ts';

/** What is set: nothing that is older may be served. */
const MAX_LAG_MS = 1_000;
/** What lies between an answer's moment and the look at the clock here: not part of the promise. */
const SLACK_MS = 500;

export const replicas: Fault = {
  name: 'replicas',
  promise:
    'The catalogue is read from replicas that are no further behind than they may be; who may write reads back each write at once; a replica that lags, hangs or dies is left out without one failed request.',
  rows: [],
  on: ['postgresql'],
  async run(world) {
    const { directory, short, atEnd } = world;
    const primary = await openCluster(world, { max_connections: '200', synchronous_commit: 'on' });
    const standbys = [await makeStandby(primary, join(directory, 'first')), await makeStandby(primary, join(directory, 'second'))] as const;
    for (const standby of standbys) atEnd(() => standby.stop('immediate'));
    const env = {
      ...settingsFor(primary),
      DATABASE_REPLICA_URLS: standbys.map(({ url }) => url).join(),
      DATABASE_REPLICA_MAX_LAG_MS: String(MAX_LAG_MS),
      LOG_LEVEL: 'silent',
    };
    const [here, there] = [await startServer(env), await startServer(env)];
    for (const server of [here, there]) atEnd(() => stopServer(server, 'SIGKILL'));
    const token = await bearer(here.url);

    for (const standby of standbys) await until(() => isRead(here.url, standby), 'a read from each replica');
    await assertCommitsNothing(standbys);
    const back = await readBack(here.url, there.url, token, short ? 50 : 1_000);
    const paused = await pause(primary, standbys, here.url, token, short ? 2_000 : 10_000);
    const killed = await kill(standbys[1], here.url, token, short ? 3_000 : 20_000);
    return { 'writes read back by their writer': back, ...paused, ...killed };
  },
};

let asked = 0;

/** Whether reads that nobody has asked before come to this replica. */
async function isRead(url: string, standby: Cluster): Promise<boolean> {
  const [begun] = await standby.sql('select clock_timestamp()::text as at');
  for (let read = 0; read < 10; read++) await product(url, 1 + (asked++ % 1_000));
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

/** How many writes their writer read back at once, at the instance that wrote and at another. */
async function readBack(here: string, there: string, token: Record<string, string>, times: number): Promise<string> {
  let found = 0;
  for (let time = 0; time < times; time++) {
    const made = await create(here, token, newBarcode());
    assert.equal(made.status, 201, made.text);
    const { pk } = sold(made);
    const url = time % 2 ? here : there;
    const [read, list] = await Promise.all([product(url, pk, token), page(url, '?limit=1', token)]);
    assert.deepEqual([read.status, sold(read).pk], [200, pk]);
    assert.equal((JSON.parse(list.text) as { count: number }).count, 1_200 + time + 1);
    found++;
  }
  return `${found} of ${times}`;
}

/** Replay stops on both replicas while the catalogue changes: nothing that is too old may be told to anyone. */
async function pause(
  primary: Cluster,
  standbys: readonly Cluster[],
  url: string,
  token: Record<string, string>,
  forMs: number,
): Promise<Record<string, string | number>> {
  /** When each number of products was committed at the latest. */
  const committed: { at: number; count: number }[] = [];
  const [row] = await primary.sql('select count(*)::int as count from product');
  let count = Number(row?.['count']);
  committed.push({ at: performance.now(), count });
  for (const standby of standbys) await until(() => isRead(url, standby), 'a read from each replica');
  for (const standby of standbys) await standby.sql('select pg_wal_replay_pause()');
  const pausedAt = performance.now();
  const old = await sharedWhilePaused(url, token);
  committed.push({ at: performance.now(), count: ++count });
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
  while (performance.now() - pausedAt < forMs) {
    const at = performance.now();
    // Each time another, so that none is shared.
    const answer = await page(url, `?limit=1&offset=${asked++ % 1_000}`);
    assert.equal(answer.status, 200, answer.text);
    const told = (JSON.parse(answer.text) as { count: number }).count;
    const next = committed.find((commit) => commit.count > told);
    oldest = Math.max(oldest, next ? at - next.at : 0);
    reads++;
  }
  assert.ok(oldest <= MAX_LAG_MS + SLACK_MS, `an answer was ${oldest} ms old`);
  for (const standby of standbys) assert.equal(await isRead(url, standby), false);
  over.abort();
  await writer;
  for (const standby of standbys) await standby.sql('select pg_wal_replay_resume()');
  for (const standby of standbys) await until(() => isRead(url, standby), 'a read from the replica that goes on');
  return {
    'first reads answered by a paused replica within its bound': old,
    'shared answers that were old': 0,
    'reads while the replay was paused': reads,
    'oldest answer': `${Math.round(oldest)} ms`,
    'to be no older than': `${MAX_LAG_MS} ms`,
  };
}

/** A replica may still answer what is old; what is kept for everyone may not be made of that. Returns how many first answers were old. */
async function sharedWhilePaused(url: string, token: Record<string, string>): Promise<number> {
  const totals = async (query: string): Promise<number> => (JSON.parse((await page(url, query)).text) as { count: number }).count;
  const made = await create(url, token, newBarcode());
  assert.equal(made.status, 201, made.text);
  const { count } = JSON.parse((await page(url, '?limit=50', token)).text) as { count: number };
  let old = 0;
  for (let limit = 51; limit < 60; limit++) {
    // What comes once is not kept; from the second time on it is.
    if ((await totals(`?limit=${limit}`)) < count) old++;
    for (let time = 0; time < 3; time++) assert.equal(await totals(`?limit=${limit}`), count, 'what is shared is old');
  }
  assert.ok(old > 0, 'no paused replica was read from');
  return old;
}

/** One replica freezes, and then dies, under load: nobody notices. */
async function kill(standby: Cluster, url: string, token: Record<string, string>, forMs: number): Promise<Record<string, string | number>> {
  const times: number[] = [];
  const failed: string[] = [];
  let acknowledged = 0;
  const end = performance.now() + forMs;
  const reading = Array.from({ length: 8 }, async () => {
    while (performance.now() < end) {
      const at = performance.now();
      const answer = await ask(`${url}/api/v1/shop/product/${1 + (asked++ % 1_000)}`);
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
  await until(() => isRead(url, standby), 'a read from the replica that was started again');
  return {
    'requests while one froze and died': times.length + acknowledged,
    'of these failed': failed.length,
    'reads p99': percentile(times, 0.99),
    'slowest read': percentile(times, 1),
  };
}
