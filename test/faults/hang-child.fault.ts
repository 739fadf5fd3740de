import assert from 'node:assert/strict';
import { join } from 'node:path';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { memoryOf } from './memory.ts';
import { childOf, makePlace, type Place } from './place.ts';
import { probe, untilServing } from './serving.ts';
import { assertKept, assertOnly, Writers } from './writers.ts';

const ROUNDS = 3;
const ROWS = 100;
const STATEMENT_TIMEOUT_MS = 10_000;
const SHORT_STATEMENT_TIMEOUT_MS = 1_000;
/** The longest that a request may take once the database is silent, in ms. */
const ANSWERED_MS = 5_000;
/** How often what is refused at once is asked. */
const ASKED = 20;
/** Longer than anyone waits. */
const RUNAWAY = 'select count(*) from generate_series(1, 1000000000000)';

/** Ways to have the child answer no more. */
const HANGS: Readonly<Record<string, (child: number, place: Place) => unknown>> = {
  frozen: (child) => process.kill(child, 'SIGSTOP'),
  // Ends with the child that runs it.
  'in a statement without end': (_child, { sql }) => void sql(RUNAWAY).catch(() => undefined),
};

export const hangChild: Fault = {
  name: 'hang-child',
  promise:
    'Where the process of the embedded database hangs, frozen or in a statement without end, what waits is answered 503 within 2 s and what comes at once; /livez stays 200; after DATABASE_STATEMENT_TIMEOUT_MS another takes its place, with all that was acknowledged.',
  rows: ['F3'],
  on: ['embedded'],
  async run(world) {
    const place = await makePlace(world);
    const limit = world.short ? SHORT_STATEMENT_TIMEOUT_MS : STATEMENT_TIMEOUT_MS;
    const server = await startServer({ ...place.env, DATABASE_STATEMENT_TIMEOUT_MS: String(limit) });
    world.atEnd(() => stopServer(server));
    const writers = new Writers();
    const dataDir = join(world.directory, 'data');
    const before = await memoryOf(server);
    const slowest = { refused: 0, replaced: 0 };
    for (let round = 0; round < (world.short ? 1 : ROUNDS); round++) {
      for (const [how, hang] of Object.entries(HANGS)) {
        const enough = writers.acknowledged.size + ROWS;
        await writers.start(server.url);
        await until(() => writers.acknowledged.size >= enough, 'so many acknowledged rows');
        const child = await childOf(dataDir);
        await hang(child, place);
        const begun = performance.now();
        await until(async () => (await probe(`${server.url}/readyz`)).status === 503, `the database ${how} to be told of`);
        for (let asked = 0; asked < ASKED; asked++) {
          const { status, ms } = await probe(`${server.url}/api/v2/shop/products`);
          // Another child may have taken its place by now.
          if (status === 503) slowest.refused = Math.max(slowest.refused, ms);
        }
        assert.equal((await probe(`${server.url}/livez`)).status, 200);
        await until(async () => (await childOf(dataDir)) !== child, `another in place of the one ${how}`);
        await untilServing(server.url);
        slowest.replaced = Math.max(slowest.replaced, performance.now() - begun);
        await writers.stop();
      }
    }
    await writers.settle(server.url);
    await assertKept(place, server.url, writers);
    assertOnly(writers, [201, 503]);
    assert.ok(writers.slowest <= ANSWERED_MS, `a request took ${Math.round(writers.slowest)} ms`);
    return {
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'answered 503': writers.statuses.get(503) ?? 0,
      'what waited was answered after at most': `${Math.round(writers.slowest)} ms`,
      'what came was refused after at most': `${Math.round(slowest.refused)} ms`,
      'served again after at most': `${(slowest.replaced / 1000).toFixed(1)} s, with a limit of ${limit / 1000} s for statements`,
      'memory of the server': `${before} MB before, ${await memoryOf(server)} MB after`,
    };
  },
};
