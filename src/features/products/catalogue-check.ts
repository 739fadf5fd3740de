import type { Context } from '../../request/context.ts';
import { readRows } from '../../database/row-mapper.ts';
import { sql } from '../../database/sql.ts';
import { newProduct } from './product.rules.ts';
import { restrictionOf } from './gs1-prefixes.ts';

const BATCH = 1_000;

/** Something about a product that somebody should look at. An error breaks a rule of the catalogue, a warning none. */
export interface Finding {
  severity: 'error' | 'warning';
  pk: number;
  message: string;
}

interface Stored {
  pk: number;
  nameKey: string;
  name: string;
  barcode: string;
  price: string;
}

/**
 * Goes over all products as they are stored, and tells what breaks the rules that new ones are held to, which barcodes are restricted and which
 * names are alike but for case and accents. By name; a batch at a time, so that memory does not grow with the catalogue. Returns how many there are.
 */
export async function* audit(ctx: Context): AsyncGenerator<Finding, number> {
  let count = 0;
  let namesake: Stored | undefined;
  for await (const product of allByName(ctx)) {
    count++;
    yield* findingsOn(product);
    if (namesake?.nameKey === product.nameKey)
      yield { severity: 'warning', pk: product.pk, message: `name: that of product ${namesake.pk}, too` };
    else namesake = product;
  }
  return count;
}

async function* allByName(ctx: Context): AsyncGenerator<Stored> {
  for (let key = '', pk = 0; ;) {
    const rows = await readRows(
      ctx,
      sql`
        select pk, name_key, name, barcode, price::text from product
        where (name_key, pk) > (${key}::text, ${pk}::integer) order by name_key, pk limit ${BATCH}`,
    );
    const batch = rows.map(([ownPk, ...texts]): Stored => {
      const [nameKey = '', name = '', barcode = '', price = ''] = texts.map(String);
      return { pk: Number(ownPk), nameKey, name, barcode, price };
    });
    yield* batch;
    const last = batch.at(-1);
    if (!last || batch.length < BATCH) return;
    ({ nameKey: key, pk } = last);
  }
}

function* findingsOn({ pk, ...product }: Stored): Generator<Finding> {
  for (const { path, message } of newProduct.safeParse(product).error?.issues ?? []) {
    yield { severity: 'error', pk, message: `${path.join('.')}: ${message}` };
  }
  const restriction = restrictionOf(product.barcode);
  if (restriction !== null) yield { severity: 'warning', pk, message: `barcode: ${product.barcode}. ${restriction}` };
}
