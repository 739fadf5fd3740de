import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { makePlace } from './place.ts';
import { assertKept, assertOnly, Writers } from './writers.ts';

const KILLS = 200;
const SHORT_KILLS = 3;
/** So many rows are acknowledged between one kill and the next, at least. */
const ROWS = 100;
/** A kill comes at any moment within so many ms after that. */
const WITHIN_MS = 60;
const CHECK_EVERY = 10;
const READY_MS = 3_000;

export const killServer: Fault = {
  name: 'kill-server',
  promise:
    'A server that is killed has lost nothing of what it acknowledged, left nothing by half, and is ready again within 3 s; what is sent again with its Idempotency-Key is done once.',
  rows: ['F1', 'L8'],
  on: ['embedded', 'postgresql'],
  async run(world) {
    const place = await makePlace(world);
    const writers = new Writers();
    const kills = world.short ? SHORT_KILLS : KILLS;
    let slowest = 0;
    let server = await startServer(place.env);
    world.atEnd(() => stopServer(server));
    for (let kill = 1; kill <= kills; kill++) {
      const enough = writers.acknowledged.size + ROWS;
      await writers.start(server.url);
      await until(() => writers.acknowledged.size >= enough, 'so many acknowledged rows');
      await setTimeout(Math.random() * WITHIN_MS);
      const killed = stopServer(server, 'SIGKILL');
      const begun = performance.now();
      await writers.stop();
      await killed;
      server = await startServer(place.env);
      slowest = Math.max(slowest, performance.now() - begun);
      if (kill % CHECK_EVERY === 0 || kill === kills) {
        await writers.settle(server.url);
        await assertKept(place, server.url, writers);
      }
    }
    assertOnly(writers, [0, 201]);
    if (!world.short) assert.ok(slowest <= READY_MS, `it was ready after ${Math.round(slowest)} ms`);
    return {
      kills,
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'requests cut off by a kill': writers.statuses.get(0) ?? 0,
      'ready again after at most': `${(slowest / 1000).toFixed(1)} s`,
      'to be ready within': `${READY_MS / 1000} s`,
    };
  },
};
