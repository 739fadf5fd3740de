import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import { assertPoolWhole, hold, openHouse, openOn, search, waitingFor, type House } from './house.ts';

const LIMIT_MS = 1_000;
const ROUNDS = 10;
const NONE_MS = '600000';

/** What ends a statement that takes too long: PostgreSQL, or the server where nobody waits for it any longer. */
const LIMITS: Readonly<Record<string, Record<string, string>>> = {
  'by its own limit': { DATABASE_STATEMENT_TIMEOUT_MS: String(LIMIT_MS), REQUEST_DEADLINE_MS: NONE_MS },
  'at the deadline': { DATABASE_STATEMENT_TIMEOUT_MS: NONE_MS, REQUEST_DEADLINE_MS: String(LIMIT_MS) },
};

export const slowStatement: Fault = {
  name: 'slow-statement',
  promise:
    'A statement that takes too long is ended, by DATABASE_STATEMENT_TIMEOUT_MS and by the deadline of its request: answered 503 with Retry-After, cancelled in PostgreSQL while what it waits for is still held, and the pool is whole.',
  rows: ['F3', 'F6'],
  on: ['postgresql'],
  async run(world) {
    const first = await openHouse(world, LIMITS['by its own limit']);
    const second = { cluster: first.cluster, ...(await openOn(first.cluster, world.atEnd, LIMITS['at the deadline'])) };
    const slowest: Record<string, string> = {};
    for (const [how, house] of [
      ['by its own limit', first],
      ['at the deadline', second],
    ] as const) {
      slowest[`ended ${how} after at most`] = `${Math.round(await endedAfter(house, world.short ? 1 : ROUNDS))} ms, of ${LIMIT_MS} ms`;
      await assertPoolWhole(house);
      await house.close();
    }
    return { rounds: world.short ? 1 : ROUNDS, 'left in PostgreSQL': 0, ...slowest };
  },
};

async function endedAfter({ cluster, server, poolMax }: House, rounds: number): Promise<number> {
  let slowest = 0;
  for (let round = 0; round < rounds; round++) {
    const release = await hold(cluster, 'product');
    try {
      const asked = Array.from({ length: poolMax }, async (_, at) => {
        const begun = performance.now();
        const answer = await (at === 0 ? fetch(`${server.url}/api/v1/shop/products`) : search(server.url, `late ${at}`));
        await answer.arrayBuffer();
        assert.deepEqual([answer.status, answer.headers.get('Retry-After')], [503, '1']);
        slowest = Math.max(slowest, performance.now() - begun);
      });
      await Promise.all(asked);
      await until(async () => (await waitingFor(cluster)) === 0, 'all to be cancelled');
    } finally {
      await release();
    }
  }
  return slowest;
}
