import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { makeProbe } from '../support/probed.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolWhole, assertServedWithout, isReady, openHouse } from './house.ts';
import { probe } from './serving.ts';
import { Readers } from './readers.ts';
import { assertKept, assertOnly, Writers } from './writers.ts';

const FROZEN_MS = 20_000;
const SHORT_FROZEN_MS = 5_000;
const READERS = 40;
/** Longer than it may take to be answered, in ms. */
const ANSWERED_MS = 5_000;
const WARM_MS = 10_000;
/** How much of its memory a server may have more of, and when. */
const MORE = 1.1;
const BACK_MS = 30_000;

export const postgresFrozen: Fault = {
  name: 'postgres-frozen',
  promise:
    'Every process of PostgreSQL frozen for 20 s under load: what waits is answered 503 within 2 to 5 s, what comes at once; /livez stays 200, /readyz is 503, what needs no database is answered; afterwards the pool is whole, nothing acknowledged is lost, and the memory is what it was within 30 s.',
  rows: ['F3'],
  on: ['postgresql'],
  async run(world) {
    const inside = await makeProbe();
    const house = await openHouse(world, inside.env);
    const { cluster, server, place } = house;
    const writers = new Writers();
    const readers = new Readers(server.url, READERS);
    await writers.start(server.url);
    readers.start();
    await setTimeout(world.short ? 1_000 : WARM_MS);
    const before = await inside.look();
    let after = before;

    await cluster.signal('SIGSTOP');
    world.atEnd(() => cluster.signal('SIGCONT').catch(() => undefined));
    const frozen = performance.now();
    await until(async () => !(await isReady(server.url)), 'it to be told of');
    const told = performance.now() - frozen;
    // Those that were waiting have been answered by now, or are just being.
    await setTimeout(500);
    readers.forgetSlowest();
    let without = 0;
    while (performance.now() - frozen < (world.short ? SHORT_FROZEN_MS : FROZEN_MS)) {
      without = Math.max(without, await assertServedWithout(server.url));
      assert.equal(await isReady(server.url), false);
      await setTimeout(200);
    }
    const atOnce = readers.slowestRefusal;
    await cluster.signal('SIGCONT');
    const thawed = performance.now();
    await until(async () => (await probe(`${server.url}/api/v2/shop/products`)).status === 200, 'it to serve again');
    const served = performance.now() - thawed;
    do {
      await setTimeout(500);
      after = await inside.look();
    } while (after.heap > before.heap * MORE && performance.now() - thawed < BACK_MS);
    await Promise.all([writers.stop(), readers.stop()]);
    await writers.settle(server.url);
    await assertKept(place, server.url, writers);
    assertOnly(writers, [201, 503]);
    readers.assertOnlyRefused();
    const slowest = Math.max(readers.slowest, writers.slowest);
    assert.ok(slowest <= ANSWERED_MS, `an answer took ${Math.round(slowest)} ms`);
    if (!world.short) assert.ok(after.heap <= before.heap * MORE, `the heap was ${before.heap} MiB, and is ${after.heap} MiB`);
    await assertPoolWhole(house);
    const lines = await house.close();
    return {
      'told of after': `${Math.round(told)} ms`,
      'what waited was answered after at most': `${Math.round(slowest)} ms`,
      'what came was refused after at most': `${Math.round(atOnce)} ms`,
      'what needs no database after at most': `${Math.round(without)} ms`,
      refused: (readers.statuses.get(503) ?? 0) + (writers.statuses.get(503) ?? 0),
      'served again after': `${Math.round(served)} ms`,
      'heap after collection': `${before.heap.toFixed(0)} MiB before, ${after.heap.toFixed(0)} MiB after`,
      'memory of the process': `${before.rss.toFixed(0)} MiB before, ${after.rss.toFixed(0)} MiB after`,
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'lines of the log': lines.length,
    };
  },
};
