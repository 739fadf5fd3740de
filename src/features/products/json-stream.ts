import { sql } from 'kysely';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Config } from '../../core/config.ts';
import type { Context } from '../../request/context.ts';
import { onReplica } from '../../request/on-replica.ts';
import { readRows } from '../../database/kysely.ts';

/** Number of products in a batch. Slow readers keep two batches in memory. */
const BATCH = 2_000;

/** Maximum share of the pool's connections for whole lists. The rest is for smaller requests. */
const MAX_POOL_SHARE = 1 / 4;

/**
 * Yields the catalogue by pk as chunks of a JSON array of products in REST format. PostgreSQL
 * writes the text in batches, the next one while the last is sent: memory does not grow with the
 * catalogue. Reading ends when the consumer stops.
 */
export async function* streamCatalogue(ctx: Context): AsyncGenerator<string> {
  const replicaCtx = onReplica(ctx);
  // No transaction around the batches: a slow client would keep it, and its connection, open.
  const batches = batchesOf((after, size) =>
    withExportSlot(replicaCtx, () => readBatch(replicaCtx, after, size)),
  );
  let isFirst = true;
  for await (const { text } of batches) {
    yield isFirst ? `[${text.slice(1)}` : text;
    isFirst = false;
  }
  yield isFirst ? '[]' : ']';
}

/**
 * Yields batches by pk and prefetches one. `read` reads the first `size` products after a pk;
 * `last` is the primary key of the last one, null if there is none.
 */
export async function* batchesOf<Batch extends { last: number | null }>(
  read: (after: number, size: number) => Promise<Batch>,
): AsyncGenerator<Batch> {
  let next = read(0, BATCH);
  for (;;) {
    const batch = await next;
    if (batch.last === null) return;
    next = read(batch.last, BATCH);
    // Avoids an unhandled rejection after the consumer has stopped.
    next.catch(() => undefined);
    yield batch;
  }
}

// Reads the first `size` products after a pk, with the fields of the REST API (interface, section 2).
async function readBatch(ctx: Context, after: number, size: number) {
  // PostgreSQL writes the JSON in a third of the time.
  const select = sql<{ last: number | null; text: string }>`
    select max(pk) as last, coalesce(string_agg(',' || to_json(batch)::text, ''), '') as text
    from (select pk, name, barcode, trim_scale(price) as price from product where pk > ${after} order by pk limit ${size}) as batch`;
  const [batch = { last: null, text: '' }] = await readRows(ctx, select);
  return batch;
}

const limits = new WeakMap<Config, LimitFunction>();

// A started list would break off if it waited too long for a connection; a slot has no time limit.
function withExportSlot<T>({ config }: Context, read: () => Promise<T>): Promise<T> {
  let limit = limits.get(config);
  if (!limit)
    limits.set(config, (limit = pLimit(Math.ceil(config.databasePoolMax * MAX_POOL_SHARE))));
  return limit(read);
}
