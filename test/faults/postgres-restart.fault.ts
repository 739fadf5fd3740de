import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolWhole, openHouse } from './house.ts';
import { Readers } from './readers.ts';
import { assertKept, assertOnly, Writers } from './writers.ts';

const RESTARTS = 20;
const READERS = 8;
const ROWS = 50;
const GONE_MS = 2_000;

export const postgresRestart: Fault = {
  name: 'postgres-restart',
  promise:
    'PostgreSQL stopped as if by a power cut, and started again, under load: nothing but 503 with Retry-After, gone within 2 s of when it takes connections again, without a restart of the server; what was acknowledged is there, and the pool is whole.',
  rows: ['F5'],
  on: ['postgresql'],
  async run(world) {
    const house = await openHouse(world);
    const { cluster, server, place } = house;
    const restarts = world.short ? 2 : RESTARTS;
    const writers = new Writers();
    const readers = new Readers(server.url, READERS);
    await writers.start(server.url);
    readers.start();
    let slowest = 0;
    for (let restart = 0; restart < restarts; restart++) {
      const enough = writers.acknowledged.size + ROWS;
      await until(() => writers.acknowledged.size >= enough, 'so many acknowledged rows');
      await cluster.stop('immediate');
      await setTimeout(restart % 2 ? 0 : 1_000);
      await cluster.start();
      const begun = performance.now();
      await setTimeout(GONE_MS + 500);
      slowest = Math.max(slowest, readers.refusedAt - begun);
      assert.ok(world.short || slowest <= GONE_MS, `refused for ${Math.round(slowest)} ms more`);
    }
    await Promise.all([writers.stop(), readers.stop()]);
    await writers.settle(server.url);
    await assertKept(place, server.url, writers);
    assertOnly(writers, [201, 503]);
    readers.assertOnlyRefused();
    await assertPoolWhole(house);
    assert.equal(server.child.exitCode, null);
    const lines = await house.close();
    return {
      restarts,
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'reads answered': readers.statuses.get(200) ?? 0,
      'reads refused': readers.statuses.get(503) ?? 0,
      'slowest answer': `${Math.round(Math.max(readers.slowest, writers.slowest))} ms`,
      'refused for at most': `${Math.max(0, Math.round(slowest))} ms after it takes connections again, of ${GONE_MS} ms`,
      'lines of the log': lines.length,
    };
  },
};
