import pLimit, { type LimitFunction } from 'p-limit';
import type { Config } from '../kit/config.ts';
import type { Context } from '../kit/context.ts';
import { reading } from '../kit/replica.ts';
import { readRows } from '../kit/rows.ts';
import { sql } from '../kit/sql.ts';

const BATCH = 5_000;
/** Products in the first batch, so that the answer begins at once. */
const FIRST_BATCH = 500;

/** Of the pool's connections, the part that whole lists may use at once. The rest is for those who ask for less. */
const SHARE = 1 / 4;

interface Batch {
  /** JSON of the products, with a comma before each. */
  text: string;
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
  let ahead = inTurn(ctx, () => readBatch(ctx, '0', FIRST_BATCH));
  let isFirst = true;
  for (;;) {
    const { text, last } = await ahead;
    if (last === null) break;
    ahead = inTurn(ctx, () => readBatch(ctx, last, BATCH));
    // Nobody waits for it any more where the reader has gone.
    ahead.catch(() => undefined);
    yield isFirst ? `[${text.slice(1)}` : text;
    isFirst = false;
  }
  yield isFirst ? '[]' : ']';
}

const turns = new WeakMap<Config, LimitFunction>();

// A list that has begun would break off where it did not get a connection in time; a turn it gets.
function inTurn<T>({ config }: Context, read: () => Promise<T>): Promise<T> {
  let turn = turns.get(config);
  // Connections to the embedded database share one backend: there, more at once would only keep it from everyone else.
  if (!turn) turns.set(config, (turn = pLimit(config.databaseUrl === undefined ? 1 : Math.ceil(config.poolMax * SHARE))));
  return turn(read);
}

async function readBatch(ctx: Context, after: string, size: number): Promise<Batch> {
  const [row] = await readRows(
    ctx,
    // A number of JSON has no zeros at the end of its fraction where JavaScript writes it. A barcode needs no escapes.
    sql`
      select max(pk), string_agg(',{"pk":' || pk || ',"name":' || to_json(name) || ',"barcode":"' || barcode || '","price":' || trim_scale(price) || '}', '')
      from (select pk, name, barcode, price from product where pk > ${after}::integer order by pk limit ${size}) as batch`,
  );
  const [last, text] = (row ?? []) as (string | null)[];
  return { last: last ?? null, text: text ?? '' };
}
