import assert from 'node:assert/strict';
import { until } from '../support/until.ts';
import type { Fault } from './fault.ts';
import {
  assertPoolUsable,
  lockTables,
  openShopCluster,
  startShopOn,
  search,
  countLockWaits,
  type ShopCluster,
} from './cluster.ts';

const LIMIT_MS = 1_000;
const ROUNDS = 10;
const NONE_MS = '600000';

/** What cancels a slow statement: PostgreSQL, or the server at the deadline of the request. */
const LIMITS: Readonly<Record<string, Record<string, string>>> = {
  // As behind a pooler, only the database limits the duration of statements.
  'by its own limit': { DATABASE_POOLER: 'transaction', REQUEST_TIMEOUT_MS: NONE_MS },
  'at the deadline': { REQUEST_TIMEOUT_MS: String(LIMIT_MS) },
};

export const slowStatement: Fault = {
  name: 'slow-statement',
  promise:
    'A statement that exceeds the statement timeout of the database, or the timeout of its request, is cancelled in PostgreSQL while its lock is still held. The response is 503 with Retry-After, and all pool connections are usable again.',
  on: ['postgresql'],
  async run(context) {
    const first = await openShopCluster(context, LIMITS['by its own limit'], {
      statement_timeout: String(LIMIT_MS),
    });
    const second = {
      cluster: first.cluster,
      ...(await startShopOn(first.cluster, context.atEnd, LIMITS['at the deadline'])),
    };
    const slowest: Record<string, string> = {};
    for (const [how, shopCluster] of [
      ['by its own limit', first],
      ['at the deadline', second],
    ] as const) {
      slowest[`ended ${how} after at most`] =
        `${Math.round(await slowestCancellation(shopCluster, context.short ? 1 : ROUNDS))} ms, of ${LIMIT_MS} ms`;
      await assertPoolUsable(shopCluster);
      await shopCluster.close();
    }
    return { rounds: context.short ? 1 : ROUNDS, 'left in PostgreSQL': 0, ...slowest };
  },
};

async function slowestCancellation(
  { cluster, server, poolMax }: ShopCluster,
  rounds: number,
): Promise<number> {
  let slowest = 0;
  for (let round = 0; round < rounds; round++) {
    const release = await lockTables(cluster, 'product');
    try {
      const requests = Array.from({ length: poolMax }, async (_, at) => {
        const begun = performance.now();
        const answer = await (at === 0
          ? fetch(`${server.url}/api/v1/shop/products`)
          : search(server.url, `late ${at}`));
        await answer.arrayBuffer();
        assert.deepEqual([answer.status, answer.headers.get('Retry-After')], [503, '1']);
        slowest = Math.max(slowest, performance.now() - begun);
      });
      await Promise.all(requests);
      await until(async () => (await countLockWaits(cluster)) === 0, 'the end of all statements');
    } finally {
      await release();
    }
  }
  return slowest;
}
