import assert from 'node:assert/strict';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { databaseProcessOf, startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { makeDatabase } from './place.ts';
import { untilServing } from './serving.ts';
import { assertKept, Writers } from './writers.ts';

const KILLS = 200;
const SHORT_KILLS = 3;
const ROWS = 100;
const WITHIN_MS = 60;
/** Maximum response time, in ms, whatever the state of the database. */
const ANSWERED_MS = 2_000;
const READY_MS = 3_000;

export const killChild: Fault = {
  name: 'kill-child',
  promise:
    'When the embedded database process is killed, pending requests get 503 within 2 s, and new ones 503 with Retry-After. The process is restarted within 3 s, without loss of acknowledged writes.',
  on: ['embedded'],
  async run(context) {
    const database = await makeDatabase(context);
    const directory = join(context.directory, 'data');
    const server = await startServer(database.env);
    context.atEnd(() => stopServer(server));
    const writers = new Writers();
    const kills = context.short ? SHORT_KILLS : KILLS;
    let slowest = 0;
    for (let kill = 0; kill < kills; kill++) {
      await writers.start(server.url);
      await writers.more(ROWS);
      await setTimeout(Math.random() * WITHIN_MS);
      const killed = await databaseProcessOf(directory);
      process.kill(killed, 'SIGKILL');
      const begun = performance.now();
      // Before it notices the death, the server is ready, and has pages in its cache.
      await until(
        async () => (await databaseProcessOf(directory).catch(() => killed)) !== killed,
        'a new database process',
      );
      await untilServing(server.url);
      slowest = Math.max(slowest, performance.now() - begun);
      await writers.stop();
    }
    assert.equal(server.child.exitCode, null);
    await assertKept(database, server.url, writers);
    if (!context.short) {
      assert.ok(writers.slowest <= ANSWERED_MS, `a request took ${Math.round(writers.slowest)} ms`);
      assert.ok(slowest <= READY_MS, `it was ready after ${Math.round(slowest)} ms`);
    }
    return {
      kills,
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'answered 503': writers.statuses.get(503) ?? 0,
      'slowest answer of all': `${Math.round(writers.slowest)} ms`,
      'to be answered within': `${ANSWERED_MS} ms`,
      'ready again after at most': `${(slowest / 1000).toFixed(1)} s`,
      'to be ready within': `${READY_MS / 1000} s`,
    };
  },
};
