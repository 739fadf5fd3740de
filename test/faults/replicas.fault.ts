import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { makeStandby, type Cluster } from '../support/postgresql.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { openCluster, settingsFor, startShop } from './place.ts';
import {
  send,
  bearer,
  create,
  newBarcode,
  page,
  percentile,
  product,
  parseProduct,
} from '../support/shopper.ts';

export const replicas: Fault = {
  name: 'replicas',
  promise:
    'A replica serves reads of the catalogue. Callers with a write scope read their own writes. The response cache stores no response of the replica. If the replica hangs or dies, no request fails. Without the primary, all requests that need the database get 503.',
  on: ['postgresql'],
  async run(context) {
    const { directory, short, atEnd } = context;
    const primary = await openCluster(context, {
      max_connections: '200',
      synchronous_commit: 'on',
    });
    const standby = await makeStandby(primary, join(directory, 'standby'));
    atEnd(() => standby.stop('immediate'));
    const env = {
      ...settingsFor(primary),
      DATABASE_REPLICA_URL: standby.url,
      LOG_LEVEL: 'silent',
    };
    const [here, there] = [await startShop(context, env), await startShop(context, env)];
    const token = await bearer(here.url);

    await until(() => isRead(here.url, standby), 'a read from the replica');
    const back = await readBack(here.url, there.url, token, short ? 50 : 1_000);
    const old = await pauseReplay(standby, here.url, token);
    const killed = await killReplica(standby, here.url, token, short ? 10_000 : 20_000);
    await losePrimary(primary, here.url);
    return {
      'writes read back by their writer': back,
      'first reads served by a paused replica': old,
      'stale cached responses': 0,
      ...killed,
    };
  },
};

let nextRead = 0;

/** Returns whether uncached reads are served by this replica. */
async function isRead(url: string, standby: Cluster): Promise<boolean> {
  const [begun] = await standby.sql('select clock_timestamp()::text as at');
  // The parameter is ignored, but the response cache has no such URL.
  for (let read = 0; read < 10; read++)
    await send(`${url}/api/v1/shop/product/1?read=${nextRead++}`);
  const [row] = await standby.sql(
    `select count(*)::int as count from pg_stat_activity
      where application_name = 'shopfront' and query like '%from "product" where%' and query_start > '${String(begun?.['at'])}'`,
  );
  return Number(row?.['count']) > 0;
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
 * Pauses replay on the replica, which may then return stale data; the response cache must not store
 * it. Returns the number of stale first responses.
 */
async function pauseReplay(
  standby: Cluster,
  url: string,
  token: Record<string, string>,
): Promise<number> {
  const totals = async (query: string): Promise<number> =>
    (JSON.parse((await page(url, query)).text) as { count: number }).count;
  await standby.sql('select pg_wal_replay_pause()');
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
  assert.ok(old > 0, 'the paused replica served no read');
  await standby.sql('select pg_wal_replay_resume()');
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

/** Stops the primary: the replica does not serve alone. */
async function losePrimary(primary: Cluster, url: string): Promise<void> {
  await primary.stop('immediate');
  const statuses = async () => [
    (await send(`${url}/readyz`)).status,
    (await product(url, 1)).status,
    (await page(url, '?limit=3')).status,
    (await send(`${url}/api/v1/shop/products`)).status,
  ];
  await until(async () => (await statuses()).every((status) => status === 503), '503');
  await primary.start();
  await until(async () => (await statuses()).every((status) => status === 200), 'the primary');
}
