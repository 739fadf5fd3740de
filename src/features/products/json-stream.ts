import pLimit, { type LimitFunction } from 'p-limit';
import type { Config } from '../../core/config.ts';
import type { Context } from '../../request/context.ts';
import { reading } from '../../request/on-replica.ts';
import { readRows } from '../../database/row-mapper.ts';
import { sql, type Sql } from '../../database/sql.ts';

const BATCH = 5_000;
/** Products in the first batch, so that the answer begins at once. */
const FIRST_BATCH = 500;

/** Of the pool's connections, the part that whole lists may use at once. The rest is for those who ask for less. */
const SHARE = 1 / 4;

/** Products as text. */
export interface Batch {
  text: string;
  /** How many there are. */
  count: number;
  /** The primary key of the last one; null where there is none. */
  last: string | null;
}

/**
 * The whole catalogue by pk as the pieces of a JSON array, each product as the rows of the REST door give it. PostgreSQL writes
 * the text, a batch at a time, and the next one while the last is on its way: memory does not grow with the catalogue, and
 * who stops reading ends the reading.
 */
export async function* catalogueAsJson(asked: Context): AsyncGenerator<string> {
  const ctx = reading(asked);
  // No transaction around the batches: a slow reader would hold one open, and with it a connection.
  const batches = batchesOf((after, size) => inTurn(ctx, () => readBatch(ctx, JSON_ITEM, after, size)));
  let isFirst = true;
  for await (const { text } of batches) {
    yield isFirst ? `[${text.slice(1)}` : text;
    isFirst = false;
  }
  yield isFirst ? '[]' : ']';
}

/** One batch after another, by pk, the next one read ahead. `read` reads the first `size` products whose pk is above `after`. */
export async function* batchesOf(read: (after: string, size: number) => Promise<Batch>): AsyncGenerator<Batch> {
  let ahead = read('0', FIRST_BATCH);
  for (;;) {
    const batch = await ahead;
    if (batch.last === null) return;
    ahead = read(batch.last, BATCH);
    // Nobody waits for it any more where the reader has gone.
    ahead.catch(() => undefined);
    yield batch;
  }
}

/** Reads the first `size` products whose pk is above `after`, each as the text that the expression makes of its columns. */
export async function readBatch(ctx: Context, item: Sql, after: string, size: number): Promise<Batch> {
  const [row] = await readRows(
    ctx,
    sql`
      select max(pk), count(*), string_agg(${item}, '')
      from (select pk, name, barcode, price, created_at, updated_at from product where pk > ${after}::integer order by pk limit ${size}) as batch`,
  );
  const [last, count, text] = (row ?? []) as (string | null)[];
  return { last: last ?? null, count: Number(count), text: text ?? '' };
}

// A number of JSON has no zeros at the end of its fraction where JavaScript writes it. A barcode needs no escapes.
/** What all JSON of a product begins with, up to the price. */
export const JSON_HEAD = sql`'{"pk":' || pk || ',"name":' || to_json(name) || ',"barcode":"' || barcode || '","price":' || trim_scale(price)`;
const JSON_ITEM = sql`',' || ${JSON_HEAD} || '}'`;

const turns = new WeakMap<Config, LimitFunction>();

// A list that has begun would break off where it did not get a connection in time; a turn it gets.
function inTurn<T>({ config }: Context, read: () => Promise<T>): Promise<T> {
  let turn = turns.get(config);
  // Connections to the embedded database share one backend: there, more at once would only keep it from everyone else.
  if (!turn) turns.set(config, (turn = pLimit(config.databaseUrl === undefined ? 1 : Math.ceil(config.poolMax * SHARE))));
  return turn(read);
}
