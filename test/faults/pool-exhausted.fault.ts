import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolWhole, assertServedWithout, hold, openHouse, search, waitingFor } from './house.ts';

const QUERIES = 100;
const BURSTS = 5;
/** For a connection, in ms, and what a busy machine takes to say so. */
const ACQUIRE_MS = 2_000;
const LINES = 2;

export const poolExhausted: Fault = {
  name: 'pool-exhausted',
  promise:
    'A hundred slow queries on a pool of four connections: those that get none within 2 s are answered 503, what needs no database is answered meanwhile, a burst is two lines in the log at most, and the pool is whole afterwards.',
  rows: ['F6'],
  on: ['postgresql'],
  async run(world) {
    // Where hot statements share a connection, all of them are held up on it.
    const house = await openHouse(world, { DATABASE_POOL_MAX: '4', DATABASE_SHARED_CONNECTIONS: '0' });
    const { cluster, server } = house;
    const statuses = { 200: 0, 503: 0 };
    const slowest = { refused: 0, without: 0 };
    const bursts = world.short ? 1 : BURSTS;
    for (let burst = 0; burst < bursts; burst++) {
      const release = await hold(cluster, 'product');
      world.atEnd(release);
      let refused = 0;
      const asked = Array.from({ length: QUERIES }, async (_, at) => {
        const begun = performance.now();
        const answer = await (at % 2
          ? fetch(`${server.url}/api/v1/shop/product/${burst * QUERIES + at}`)
          : search(server.url, `slow ${burst} ${at}`));
        const body = await answer.text();
        assert.ok(answer.status === 200 || answer.status === 503, `answered ${answer.status}: ${body}`);
        statuses[answer.status]++;
        if (answer.status === 200) return;
        refused++;
        assert.equal(answer.headers.get('Retry-After'), '1');
        slowest.refused = Math.max(slowest.refused, performance.now() - begun);
      });
      await until(async () => (await waitingFor(cluster)) === 4, 'the pool to be taken');
      slowest.without = Math.max(slowest.without, await assertServedWithout(server.url));
      assert.equal((await fetch(`${server.url}/readyz`)).status, 200);
      await until(() => refused === QUERIES - 4, 'those without a connection to be told');
      await release();
      await Promise.all(asked);
    }
    assert.deepEqual(statuses, { 200: bursts * 4, 503: bursts * (QUERIES - 4) });
    assert.ok(slowest.without < ACQUIRE_MS, 'what needs no database has waited for a connection');
    assert.ok(slowest.refused < 2 * ACQUIRE_MS, 'who got no connection has waited for one twice');
    await assertPoolWhole(house);
    const lines = await house.close();
    assert.ok(lines.length <= bursts * LINES, `${lines.length} lines of the log`);
    return {
      queries: bursts * QUERIES,
      answered: statuses[200],
      refused: statuses[503],
      'refused after at most': `${Math.round(slowest.refused)} ms, of which ${ACQUIRE_MS} ms are waited`,
      'what needs no database after at most': `${Math.round(slowest.without)} ms`,
      'lines of the log': lines.length,
    };
  },
};
