import type { Context } from '../kit/context.ts';
import { readRows } from '../kit/rows.ts';
import { sql } from '../kit/sql.ts';

const BATCH = 5_000;
/** Products in the first batch, so that the answer begins at once. */
const FIRST_BATCH = 500;

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
export async function* catalogueAsJson(ctx: Context): AsyncGenerator<string> {
  // No transaction around the batches: a slow reader would hold one open, and with it a connection.
  let ahead = readBatch(ctx, '0', FIRST_BATCH);
  let isFirst = true;
  for (;;) {
    const { text, last } = await ahead;
    if (last === null) break;
    ahead = readBatch(ctx, last, BATCH);
    // Nobody waits for it any more where the reader has gone.
    ahead.catch(() => undefined);
    yield isFirst ? `[${text.slice(1)}` : text;
    isFirst = false;
  }
  yield isFirst ? '[]' : ']';
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
