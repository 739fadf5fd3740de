import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import type { Fault } from './fault.ts';
import { assertPoolUsable, openShopCluster } from './cluster.ts';
import { Readers } from './readers.ts';
import { assertKept, Writers } from './writers.ts';

const RESTARTS = 20;
const READERS = 8;
const ROWS = 50;
const GONE_MS = 2_000;

export const postgresRestart: Fault = {
  name: 'postgres-restart',
  promise:
    'When PostgreSQL stops under load, as in a power failure or as planned, and starts again, clients get only 503 with Retry-After, until at most 2 s after it accepts connections. The server is not restarted, no acknowledged write is lost, and all pool connections are usable.',
  on: ['postgresql'],
  async run(context) {
    const shopCluster = await openShopCluster(context);
    const { cluster, server, database } = shopCluster;
    const restarts = context.short ? 2 : RESTARTS;
    const writers = new Writers();
    const readers = new Readers(server.url, READERS);
    await writers.start(server.url);
    readers.start();
    let slowest = 0;
    for (let restart = 0; restart < restarts; restart++) {
      await writers.more(ROWS);
      await cluster.stop(restart % 2 ? 'fast' : 'immediate');
      await setTimeout(restart % 4 < 2 ? 1_000 : 0);
      await cluster.start();
      const begun = performance.now();
      await setTimeout(GONE_MS + 500);
      slowest = Math.max(slowest, readers.rejectedAt - begun);
      assert.ok(context.short || slowest <= GONE_MS, `rejected for ${Math.round(slowest)} ms more`);
    }
    await assertKept(database, server.url, writers, readers);
    await assertPoolUsable(shopCluster);
    assert.equal(server.child.exitCode, null);
    const lines = await shopCluster.close();
    return {
      restarts,
      'rows acknowledged': writers.acknowledged.size,
      'rows lost': 0,
      'reads answered': readers.statuses.get(200) ?? 0,
      'reads rejected': readers.statuses.get(503) ?? 0,
      'slowest answer': `${Math.round(Math.max(readers.slowest, writers.slowest))} ms`,
      'rejected for at most': `${Math.max(0, Math.round(slowest))} ms after it accepts connections again, of ${GONE_MS} ms`,
      'lines of the log': lines.length,
    };
  },
};
