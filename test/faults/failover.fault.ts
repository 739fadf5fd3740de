import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  makeStandby,
  ownedDirectory,
  restartAsStandby,
  type Cluster,
} from '../support/postgresql.ts';
import { openStream, type OpenEventStream } from '../support/events.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/until.ts';
import type { Fault, FaultContext, Figures } from './fault.ts';
import { openCluster, settingsFor, startShop } from './place.ts';
import { Readers } from './readers.ts';
import { bearer, page } from '../support/shopper.ts';
import { assertKept, assertOnly, Writers } from './writers.ts';

const READERS = 4;
const ROWS = 50;
/** Maximum time in ms until the instance uses the new primary only. */
const MOVED_MS = 2_000;
/** Maximum time in ms until the subscriptions end after lost commits. */
const TOLD_MS = 10_000;
/** More transactions than the old primary had in the meantime. */
const TRANSACTIONS = 5_000;
/** Time in ms in which the last confirmations of a frozen standby arrive. */
const CONFIRMED_MS = 1_000;
/** Time in ms for which the standby is frozen, which is longer than a request may take. */
const FROZEN_MS = 20_000;
const SHORT_FROZEN_MS = 5_000;
const REQUEST_TIMEOUT_MS = 3_000;
/** Time in ms for which the proxy leads to the old primary after it has become a standby. */
const STANDBY_MS = 3_000;

/** A primary and a standby behind a proxy, and a shop server on the proxy under load. */
interface Scene {
  primary: Cluster;
  standby: Cluster;
  proxy: TcpProxy;
  url: string;
  writers: Writers;
  readers: Readers;
}

export const failover: Fault = {
  name: 'failover',
  promise:
    'After a standby is promoted, requests get 200, 201 or 503. The 503 end at most 2 s after the address of the database leads to the new primary. No acknowledged write is lost with synchronous replication. With asynchronous replication, writes may be lost; subscriptions then end with an error, and row counts are correct. A standby is not used as a primary. An old primary that is still running gets no writes after 2 s.',
  on: ['postgresql'],
  async run(context) {
    const rounds = context.short ? 1 : 5;
    return {
      ...(!context.short && (await promote(context, 'cut', rounds))),
      ...(await promote(context, 'left open', rounds)),
      ...(await leaveRunning(context)),
      ...(await freezeStandby(context)),
      ...(await loseCommits(context)),
    };
  },
};

/** Swaps the roles of both servers; the proxy cuts open connections to the standby or not. */
async function promote(
  context: FaultContext,
  connections: 'cut' | 'left open',
  rounds: number,
): Promise<Figures> {
  // Nothing is acknowledged that the standby does not have.
  const scene = await open(context, connections, true);
  const { proxy, url, writers, readers } = scene;
  let { primary, standby } = scene;
  let slowest = 0;
  for (let round = 0; round < rounds; round++) {
    await writers.more(ROWS);
    await primary.stop('fast');
    await endRecovery(standby);
    [primary, standby] = [standby, primary];
    await restartAsStandby(standby, primary);
    // The instance reconnects to the old primary, which is a standby now.
    await setTimeout(STANDBY_MS);
    assert.equal((await fetch(`${url}/readyz`)).status, 503, 'a standby counts as the primary');
    const begun = performance.now();
    proxy.turn(primary.port, connections === 'cut');
    await writers.more(ROWS);
    await until(async () => (await fetch(`${url}/readyz`)).status === 200, 'a ready instance');
    await setTimeout(MOVED_MS);
    slowest = Math.max(slowest, readers.rejectedAt - begun);
    assert.ok(context.short || slowest <= MOVED_MS, `rejected for ${Math.round(slowest)} ms more`);
  }
  await assertKept(primary, url, writers, readers);
  return {
    [`failovers, connections to the standby ${connections}`]: rounds,
    [`rows acknowledged, ${connections}`]: writers.acknowledged.size,
    [`rows lost, ${connections}`]: 0,
    [`rejected for at most, ${connections}`]: `${Math.max(0, Math.round(slowest))} ms, of ${MOVED_MS} ms`,
  };
}

/** Promotes the standby while the old primary, and the connections to it, stay. */
async function leaveRunning(context: FaultContext): Promise<Figures> {
  const scene = await open(context, 'both', false);
  const { primary, standby, url, writers, readers } = scene;
  await writers.more(ROWS);
  const later = await promoteBeside(context, scene, primary, standby);
  assertOnly(writers, [201, 503]);
  readers.assertOnlyRejected();
  await writers.resend(url);
  return {
    'rows acknowledged more than 2 s after a second primary took over': later,
    'of these on the old primary': 0,
  };
}

/**
 * Promotes the standby while the primary stays, and turns the proxy. Stops writers and readers.
 * Returns the number of rows that were acknowledged later than 2 s after it; all are on the standby.
 */
async function promoteBeside(
  context: FaultContext,
  { proxy, writers, readers }: Scene,
  primary: Cluster,
  standby: Cluster,
): Promise<number> {
  await endRecovery(standby);
  proxy.turn(standby.port, false);
  // In CI, other programs run beside.
  await setTimeout(context.short ? 3 * MOVED_MS : MOVED_MS);
  const before = new Set(writers.acknowledged.keys());
  await writers.more(ROWS);
  await Promise.all([writers.stop(), readers.stop()]);
  const later = [...writers.acknowledged.keys()].filter((barcode) => !before.has(barcode));
  const countOn = async (cluster: Cluster) => {
    const [row] = await cluster.sql(
      `select count(*)::int as count from product where barcode = any('{${later.join()}}')`,
    );
    return Number(row?.['count']);
  };
  assert.deepEqual([await countOn(primary), await countOn(standby)], [0, later.length]);
  return later.length;
}

/** Freezes the synchronous standby for longer than a request may take; then promotes it. */
async function freezeStandby(context: FaultContext): Promise<Figures> {
  const scene = await open(context, 'frozen', true);
  const { primary, standby, proxy, url, writers, readers } = scene;
  await writers.more(ROWS);
  await standby.signal('SIGSTOP');
  // What the standby had confirmed is acknowledged.
  await setTimeout(CONFIRMED_MS);
  const before = writers.acknowledged.size;
  await setTimeout(context.short ? SHORT_FROZEN_MS : FROZEN_MS);
  assert.equal(writers.acknowledged.size, before, 'acknowledged without the standby');
  await standby.signal('SIGCONT');
  const begun = performance.now();
  await writers.more(ROWS);
  const waited = performance.now() - begun;
  await primary.stop('immediate');
  await endRecovery(standby);
  // It has no standby itself.
  await replicateTo(standby, '');
  proxy.turn(standby.port, true);
  await until(async () => (await fetch(`${url}/readyz`)).status === 200, 'a ready instance');
  await assertKept(standby, url, writers, readers);
  return {
    'rows acknowledged while the standby was frozen': 0,
    'rows acknowledged again after': `${Math.round(waited)} ms`,
    'rows acknowledged, and lost when it was promoted': `${writers.acknowledged.size}, 0`,
  };
}

/**
 * Promotes a standby that lacks the last commits, after it has counted its transactions past them.
 */
async function loseCommits(context: FaultContext): Promise<Figures> {
  const { primary, standby, proxy, url, writers, readers } = await open(context, 'lost', false);
  const subscription = await openStream(`${url}/graphql`, {
    method: 'POST',
    headers: {
      Accept: 'text/event-stream',
      'Content-Type': 'application/json',
      ...(await bearer(url)),
    },
    body: JSON.stringify({ query: 'subscription { productChanged { kind } }' }),
  });
  const ended = errorOf(subscription);
  await writers.more(ROWS);
  await standby.sql(`alter system set primary_conninfo = ''`);
  await standby.sql('select pg_reload_conf()');
  await until(async () => (await standby.sql('select from pg_stat_wal_receiver')).length === 0);
  const before = writers.acknowledged.size;
  await writers.more(ROWS);
  await Promise.all([writers.stop(), readers.stop()]);
  await primary.stop('immediate');
  await endRecovery(standby);
  await standby.sql(
    `do 'begin for turn in 1..${TRANSACTIONS} loop update product set updated_at = now() where pk = 1; commit; end loop; end'`,
  );
  proxy.turn(standby.port, true);
  const code = await Promise.race([ended, setTimeout(TOLD_MS, 'none')]);
  assert.equal(code, 'CURSOR_EXPIRED', 'the end of the subscription');
  await until(async () => (await fetch(`${url}/readyz`)).status === 200, 'a ready instance');
  const [row] = await standby.sql('select count(*)::int as count from product');
  const { count } = JSON.parse((await page(url)).text) as { count: number };
  assert.equal(count, row?.['count'], 'the row count is wrong');
  return {
    'rows lost by asynchronous replication': writers.acknowledged.size - before,
    'subscriptions told, and counts right after it': 'all',
  };
}

/** Returns the code of the error that ends a subscription. */
async function errorOf(stream: OpenEventStream): Promise<string | undefined> {
  for (let event = await stream.next(); event; event = await stream.next()) {
    const { errors } = (event.data ?? {}) as { errors?: { extensions: { code: string } }[] };
    if (errors?.[0]) return errors[0].extensions.code;
  }
  return undefined;
}

async function open(context: FaultContext, name: string, isSynchronous: boolean): Promise<Scene> {
  const directory = join(context.directory, name.replaceAll(' ', '-'));
  await ownedDirectory(directory);
  const primary = await openCluster({ ...context, directory });
  const standby = await makeStandby(primary, join(directory, 'standby'));
  context.atEnd(() => standby.stop('immediate'));
  if (isSynchronous) for (const cluster of [primary, standby]) await replicateTo(cluster, '*');
  const proxy = await startTcpProxy(primary.port);
  context.atEnd(() => proxy.close());
  const { url } = await startShop(context, {
    ...settingsFor({
      ...primary,
      url: primary.url.replace(String(primary.port), String(proxy.port)),
    }),
    LOG_LEVEL: 'silent',
    REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
  });
  const writers = new Writers();
  const readers = new Readers(url, READERS);
  await writers.start(url);
  readers.start();
  return { primary, standby, proxy, url, writers, readers };
}

/** Promotes a standby. */
async function endRecovery(standby: Cluster): Promise<void> {
  // A statement that waited for it could conflict with the replay of the log.
  await standby.sql('select pg_promote(wait => false)');
  await until(async () => {
    const [row] = await standby.sql('select pg_is_in_recovery() as is_standby');
    return row?.['is_standby'] === false;
  }, 'the end of the recovery');
}

/** Sets the standbys (`synchronous_standby_names`) that must have a commit before it returns. */
async function replicateTo(cluster: Cluster, standbys: '' | '*'): Promise<void> {
  await cluster.sql(`alter system set synchronous_standby_names = '${standbys}'`);
  await cluster.sql('select pg_reload_conf()');
}
