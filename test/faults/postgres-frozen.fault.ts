import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { makeProbe } from '../support/probed.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import {
  assertPoolUsable,
  assertServedWithoutDatabase,
  isReady,
  openShopCluster,
} from './cluster.ts';
import { probe } from './serving.ts';
import { Readers } from './readers.ts';
import { assertKept, Writers } from './writers.ts';

const FROZEN_MS = 20_000;
const SHORT_FROZEN_MS = 5_000;
const READERS = 40;
/** Maximum response time, in ms. */
const ANSWERED_MS = 5_000;
const WARM_MS = 10_000;
/** Factor by which the heap may exceed its size before, and the time limit for that, in ms. */
const MAX_HEAP_RATIO = 1.1;
const BACK_MS = 30_000;

export const postgresFrozen: Fault = {
  name: 'postgres-frozen',
  promise:
    'When all PostgreSQL processes are frozen for 20 s under load, pending requests get 503 within 2 to 5 s, and new ones at once. /livez returns 200, /readyz 503, and requests that need no database succeed. Afterwards all pool connections are usable, no acknowledged write is lost, and memory is back to its previous level within 30 s.',
  on: ['postgresql'],
  async run(context) {
    const serverProbe = await makeProbe();
    const shopCluster = await openShopCluster(context, serverProbe.env);
    const { cluster, server, database } = shopCluster;
    const writers = new Writers();
    const readers = new Readers(server.url, READERS);
    await writers.start(server.url);
    readers.start();
    await setTimeout(context.short ? 1_000 : WARM_MS);
    const before = await serverProbe.sample();
    let after = before;

    await cluster.signal('SIGSTOP');
    context.atEnd(() => cluster.signal('SIGCONT').catch(() => undefined));
    const frozen = performance.now();
    await until(async () => !(await isReady(server.url)), 'the detection of the frozen database');
    const notReadyAfter = performance.now() - frozen;
    // Waits for the responses of pending requests.
    await setTimeout(500);
    readers.resetSlowestRejection();
    let without = 0;
    while (performance.now() - frozen < (context.short ? SHORT_FROZEN_MS : FROZEN_MS)) {
      without = Math.max(without, await assertServedWithoutDatabase(server.url));
      assert.equal(await isReady(server.url), false);
      await setTimeout(200);
    }
    const slowestRejection = readers.slowestRejection;
    await cluster.signal('SIGCONT');
    const thawed = performance.now();
    await until(
      async () => (await probe(`${server.url}/api/v2/shop/products`)).status === 200,
      'a served request',
    );
    const served = performance.now() - thawed;
    do {
      await setTimeout(500);
      after = await serverProbe.sample();
    } while (after.heap > before.heap * MAX_HEAP_RATIO && performance.now() - thawed < BACK_MS);
    await assertKept(database, server.url, writers, readers);
    const slowest = Math.max(readers.slowest, writers.slowest);
    assert.ok(slowest <= ANSWERED_MS, `an answer took ${Math.round(slowest)} ms`);
    if (!context.short)
      assert.ok(
        after.heap <= before.heap * MAX_HEAP_RATIO,
        `the heap was ${before.heap} MiB, and is ${after.heap} MiB`,
      );
    await assertPoolUsable(shopCluster);
    const lines = await shopCluster.close();
    return {
      'not ready after': `${Math.round(notReadyAfter)} ms`,
      'pending requests answered after at most': `${Math.round(slowest)} ms`,
      'new requests rejected after at most': `${Math.round(slowestRejection)} ms`,
      'requests without a database after at most': `${Math.round(without)} ms`,
      rejected: (readers.statuses.get(503) ?? 0) + (writers.statuses.get(503) ?? 0),
      'served again after': `${Math.round(served)} ms`,
      'heap after collection': `${before.heap.toFixed(0)} MiB before, ${after.heap.toFixed(0)} MiB after`,
      'memory of the process': `${before.rss.toFixed(0)} MiB before, ${after.rss.toFixed(0)} MiB after`,
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'lines of the log': lines.length,
    };
  },
};
