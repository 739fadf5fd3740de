import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { startServer, stopServer } from '../support/process.ts';
import type { Fault } from './fault.ts';
import { makeDatabase } from './place.ts';
import { assertKept, Writers } from './writers.ts';

const KILLS = 200;
const SHORT_KILLS = 3;
/** Minimum number of acknowledged rows between two kills. */
const ROWS = 100;
/** Maximum delay of a kill after that, in ms. */
const WITHIN_MS = 60;
const CHECK_EVERY = 10;
const READY_MS = 3_000;

export const killServer: Fault = {
  name: 'kill-server',
  promise:
    'A killed server loses no acknowledged write, stores nothing partially, and is ready within 3 s of its restart. A write that is repeated with its Idempotency-Key is executed once.',
  on: ['embedded', 'postgresql'],
  async run(context) {
    const database = await makeDatabase(context);
    const writers = new Writers();
    const kills = context.short ? SHORT_KILLS : KILLS;
    let slowest = 0;
    let server = await startServer(database.env);
    context.atEnd(() => stopServer(server));
    for (let kill = 1; kill <= kills; kill++) {
      await writers.start(server.url);
      await writers.more(ROWS);
      await setTimeout(Math.random() * WITHIN_MS);
      const killed = stopServer(server, 'SIGKILL');
      const begun = performance.now();
      await writers.stop();
      await killed;
      server = await startServer(database.env);
      slowest = Math.max(slowest, performance.now() - begun);
      if (kill % CHECK_EVERY === 0 || kill === kills) {
        await assertKept(database, server.url, writers, undefined, [0, 201]);
      }
    }
    if (!context.short)
      assert.ok(slowest <= READY_MS, `it was ready after ${Math.round(slowest)} ms`);
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
