import pLimit, { type LimitFunction } from 'p-limit';
import type { Config } from '../../core/config.ts';
import type { Context } from '../../request/context.ts';
import { onReplica } from '../../request/on-replica.ts';
import { readRows } from '../../database/row-mapper.ts';
import { COLUMNS, isOptional, kindOf } from './product.columns.ts';
import type { ProductField } from './product.rules.ts';
import { identifier, join, raw, sql, type Sql } from '../../database/sql.ts';

/** Number of products in a batch. */
const BATCH = 5_000;
/** Number of products in the first batch: small, so that the response starts at once. */
const FIRST_BATCH = 500;
/** Number of open lists above which batches get smaller, because slow readers keep them in memory. */
const MANY_LISTS = 8;

/** Maximum share of the pool's connections for whole lists. The rest is for smaller requests. */
const MAX_POOL_SHARE = 1 / 4;

/** A batch of products as text. */
export interface Batch {
  text: string;
  /** Number of products. */
  count: number;
  /** Primary key of the last product; null for an empty batch. */
  last: string | null;
}

/**
 * Yields the catalogue by pk as chunks of a JSON array of products in REST format. PostgreSQL
 * writes the text in batches, the next one while the last is sent: memory does not grow with the
 * catalogue. Reading ends when the consumer stops.
 */
export async function* streamCatalogue(ctx: Context): AsyncGenerator<string> {
  const replicaCtx = onReplica(ctx);
  // No transaction around the batches: a slow client would keep it, and its connection, open.
  const batches = batchesOf((after, size) =>
    withExportSlot(replicaCtx, () => readBatch(replicaCtx, JSON_ITEM, after, size)),
  );
  let isFirst = true;
  for await (const { text } of batches) {
    yield isFirst ? `[${text.slice(1)}` : text;
    isFirst = false;
  }
  yield isFirst ? '[]' : ']';
}

let openLists = 0;

/** Yields batches by pk and prefetches one. `read` reads the first `size` products after a pk. */
export async function* batchesOf(
  read: (after: string, size: number) => Promise<Batch>,
): AsyncGenerator<Batch> {
  openLists++;
  try {
    let next = read('0', FIRST_BATCH);
    for (;;) {
      const batch = await next;
      if (batch.last === null) return;
      const size = Math.floor((BATCH * MANY_LISTS) / Math.max(openLists, MANY_LISTS));
      next = read(batch.last, Math.max(size, FIRST_BATCH));
      // Avoids an unhandled rejection after the consumer has stopped.
      next.catch(() => undefined);
      yield batch;
    }
  } finally {
    openLists--;
  }
}

/** Reads the first `size` products after a pk; `item` is the SQL expression of a product's text. */
export async function readBatch(
  ctx: Context,
  item: Sql,
  after: string,
  size: number,
): Promise<Batch> {
  const [row] = await readRows(
    ctx,
    sql`
      select max(pk), count(*), string_agg(${item}, '')
      from (select pk, ${COLUMNS}, created_at, updated_at from product where pk > ${after}::bigint order by pk limit ${size}) as batch`,
  );
  const [last, count, text] = (row ?? []) as (string | null)[];
  return { last: last ?? null, count: Number(count), text: text ?? '' };
}

/** Returns the SQL expression of the start of a product's JSON: its primary key and these fields. */
export function jsonHead(fields: readonly ProductField[]): Sql {
  const members = fields.map((field) => {
    const value = kindOf(field).json(identifier(field));
    const written = isOptional(field) ? sql`coalesce((${value})::text, 'null')` : value;
    return sql`${raw(`',"${field}":'`)} || ${written}`;
  });
  return sql`'{"pk":' || pk || ${join(members, ' || ')}`;
}

// The fields of the REST API (interface, section 2).
const JSON_ITEM = sql`',' || ${jsonHead(['name', 'barcode', 'price'])} || '}'`;

const limits = new WeakMap<Config, LimitFunction>();

// A started list would break off if it waited too long for a connection; a slot has no time limit.
function withExportSlot<T>({ config }: Context, read: () => Promise<T>): Promise<T> {
  let limit = limits.get(config);
  if (!limit)
    limits.set(config, (limit = pLimit(Math.ceil(config.databasePoolMax * MAX_POOL_SHARE))));
  return limit(read);
}
