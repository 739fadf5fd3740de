import assert from 'node:assert/strict';
import { join } from 'node:path';
import { startServer, stopServer } from '../support/process.ts';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { memoryOf } from './memory.ts';
import { databaseProcessOf, makeDatabase, type ShopDatabase } from './place.ts';
import { probe, untilServing } from './serving.ts';
import { assertStored, assertOnly, Writers } from './writers.ts';

const ROUNDS = 3;
const ROWS = 100;
const STATEMENT_TIMEOUT_MS = 10_000;
const SHORT_STATEMENT_TIMEOUT_MS = 1_000;
/** Maximum response time while the database hangs, in ms. */
const ANSWERED_MS = 5_000;
/** Number of requests that must be rejected at once. */
const PROBES = 20;
/** A query that never ends. */
const ENDLESS_QUERY = 'select count(*) from generate_series(1, 1000000000000)';

/** Ways to make the database process hang. */
const HANGS: Readonly<Record<string, (child: number, database: ShopDatabase) => unknown>> = {
  frozen: (child) => process.kill(child, 'SIGSTOP'),
  // Ends with the database process.
  'in a statement without end': (_child, { sql }) => void sql(ENDLESS_QUERY).catch(() => undefined),
};

export const hangChild: Fault = {
  name: 'hang-child',
  promise:
    'When the embedded database process hangs, pending requests get 503 within 2 s and new requests at once. /livez returns 200. After DATABASE_STATEMENT_TIMEOUT_MS the process is replaced, without loss of acknowledged writes.',
  on: ['embedded'],
  async run(context) {
    const database = await makeDatabase(context);
    const limit = context.short ? SHORT_STATEMENT_TIMEOUT_MS : STATEMENT_TIMEOUT_MS;
    const server = await startServer({
      ...database.env,
      DATABASE_STATEMENT_TIMEOUT_MS: String(limit),
    });
    context.atEnd(() => stopServer(server));
    const writers = new Writers();
    const dataDir = join(context.directory, 'data');
    const before = await memoryOf(server);
    const slowest = { rejected: 0, replaced: 0 };
    for (let round = 0; round < (context.short ? 1 : ROUNDS); round++) {
      for (const [how, hang] of Object.entries(HANGS)) {
        const enough = writers.acknowledged.size + ROWS;
        await writers.start(server.url);
        await until(() => writers.acknowledged.size >= enough, 'enough acknowledged rows');
        const child = await databaseProcessOf(dataDir);
        await hang(child, database);
        const begun = performance.now();
        await until(
          async () => (await probe(`${server.url}/readyz`)).status === 503,
          `the detection of a database ${how}`,
        );
        for (let count = 0; count < PROBES; count++) {
          const { status, ms } = await probe(`${server.url}/api/v2/shop/products`);
          // The database process may already be replaced.
          if (status === 503) slowest.rejected = Math.max(slowest.rejected, ms);
        }
        assert.equal((await probe(`${server.url}/livez`)).status, 200);
        await until(
          async () => (await databaseProcessOf(dataDir)) !== child,
          `the replacement of a database ${how}`,
        );
        await untilServing(server.url);
        slowest.replaced = Math.max(slowest.replaced, performance.now() - begun);
        await writers.stop();
      }
    }
    await writers.resend(server.url);
    await assertStored(database, server.url, writers);
    assertOnly(writers, [201, 503]);
    assert.ok(writers.slowest <= ANSWERED_MS, `a request took ${Math.round(writers.slowest)} ms`);
    return {
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'answered 503': writers.statuses.get(503) ?? 0,
      'pending requests answered after at most': `${Math.round(writers.slowest)} ms`,
      'new requests rejected after at most': `${Math.round(slowest.rejected)} ms`,
      'served again after at most': `${(slowest.replaced / 1000).toFixed(1)} s, with a limit of ${limit / 1000} s for statements`,
      'memory of the server': `${before} MB before, ${await memoryOf(server)} MB after`,
    };
  },
};
