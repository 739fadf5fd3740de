import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import {
  assertPoolUsable,
  assertServedWithoutDatabase,
  lockTables,
  openShopCluster,
  search,
  countLockWaits,
} from './cluster.ts';

const QUERIES = 100;
const BURSTS = 5;
/** Timeout of pool acquisition, in ms. */
const ACQUIRE_MS = 2_000;
const LINES = 2;

export const poolExhausted: Fault = {
  name: 'pool-exhausted',
  promise:
    'With 100 slow queries on a pool of four connections, requests that get no connection within 2 s get 503, and requests that need no database succeed. A burst logs at most two lines, and all pool connections are usable again.',
  on: ['postgresql'],
  async run(context) {
    // As behind a pooler, there is no pipelined connection, on which prepared statements would all
    // wait.
    const shopCluster = await openShopCluster(context, {
      DATABASE_POOL_MAX: '4',
      DATABASE_POOLER: 'transaction',
    });
    const { cluster, server } = shopCluster;
    const statuses = { 200: 0, 503: 0 };
    const slowest = { rejected: 0, without: 0 };
    const bursts = context.short ? 1 : BURSTS;
    for (let burst = 0; burst < bursts; burst++) {
      const release = await lockTables(cluster, 'product');
      context.atEnd(release);
      let rejected = 0;
      const requests = Array.from({ length: QUERIES }, async (_, at) => {
        const begun = performance.now();
        const answer = await (at % 2
          ? fetch(`${server.url}/api/v1/shop/product/${burst * QUERIES + at}`)
          : search(server.url, `slow ${burst} ${at}`));
        const body = await answer.text();
        assert.ok(
          answer.status === 200 || answer.status === 503,
          `answered ${answer.status}: ${body}`,
        );
        statuses[answer.status]++;
        if (answer.status === 200) return;
        rejected++;
        assert.equal(answer.headers.get('Retry-After'), '1');
        slowest.rejected = Math.max(slowest.rejected, performance.now() - begun);
      });
      await until(async () => (await countLockWaits(cluster)) === 4, 'the pool to be exhausted');
      slowest.without = Math.max(slowest.without, await assertServedWithoutDatabase(server.url));
      assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
      await until(() => rejected === QUERIES - 4, 'the rejection of requests without a connection');
      await release();
      await Promise.all(requests);
    }
    assert.deepEqual(statuses, { 200: bursts * 4, 503: bursts * (QUERIES - 4) });
    assert.ok(slowest.without < ACQUIRE_MS, 'a request without a database waited for a connection');
    assert.ok(
      slowest.rejected < 2 * ACQUIRE_MS,
      'a rejected request waited twice for a connection',
    );
    await assertPoolUsable(shopCluster);
    const lines = await shopCluster.close();
    assert.ok(lines.length <= bursts * LINES, `${lines.length} log lines`);
    return {
      queries: bursts * QUERIES,
      answered: statuses[200],
      rejected: statuses[503],
      'rejected after at most': `${Math.round(slowest.rejected)} ms, of which ${ACQUIRE_MS} ms are the wait`,
      'requests without a database after at most': `${Math.round(slowest.without)} ms`,
      'lines of the log': lines.length,
    };
  },
};
