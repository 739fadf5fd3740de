import type { CopyTransaction } from '../../../database/copy.ts';
import { sql, type Cell } from '../../../database/sql.ts';
import { insertNew, reserveNew } from '../insert-sql.ts';
import type { NewProduct } from '../product.rules.ts';

/** Row counts of a batch, by result. */
export interface Outcome {
  created: number;
  changed: number;
  /** Equal to the stored product. */
  unchanged: number;
}

/** Reserved primary keys of new products, by barcode. */
export type Reserved = ReadonlyMap<string, string>;

const STAGED = {
  place: 'integer',
  name: 'text',
  barcode: 'text',
  price: 'numeric',
  reserved: 'integer',
};
const NONE_RESERVED = '0';

/** Reserves primary keys for the new products, in order. */
export async function reserve(
  copy: CopyTransaction,
  products: readonly NewProduct[],
): Promise<Reserved> {
  await preferIndexLookups(copy);
  const rows = await copy.run(reserveNew(products.map(({ barcode }) => barcode)));
  return new Map(rows.map(([barcode, pk]) => [String(barcode), String(pk)]));
}

/**
 * Creates products and updates those with the same barcodes, in this transaction. Barcodes must be
 * unique. Locks existing products first, then new ones, each by barcode, so that concurrent calls
 * cannot deadlock.
 */
export async function upsert(
  copy: CopyTransaction,
  products: readonly NewProduct[],
  now: Date,
  reserved?: Reserved,
): Promise<Outcome> {
  await stage(copy, products, reserved);
  const updated = await copy.run(sql`
    with differing as materialized (
      select product.pk, staged.name, staged.price from product_staged as staged join product using (barcode)
      where (product.name, product.price) is distinct from (staged.name, staged.price) order by barcode for update of product
    ), changed as (
      update product set name = differing.name, price = differing.price, updated_at = ${now}::timestamptz
      from differing where product.pk = differing.pk returning product.pk
    )
    select count(*) from changed`);
  const upserted = await copy.run(sql`
    with made as (
      ${insertNew(sql`select * from product_staged`, now, sql`nullif(reserved, 0)`)}
      on conflict (barcode) do update set name = excluded.name, price = excluded.price, updated_at = excluded.updated_at
        where (product.name, product.price) is distinct from (excluded.name, excluded.price)
      returning xmax = 0 as is_new
    )
    select count(*) filter (where is_new), count(*) filter (where not is_new) from made`);
  const [created = 0, changedMeanwhile = 0] = countsOf(upserted);
  const changed = (countsOf(updated)[0] ?? 0) + changedMeanwhile;
  return { created, changed, unchanged: products.length - created - changed };
}

/** Returns what `upsert` would return now, without writing products. */
export async function planBatch(
  copy: CopyTransaction,
  products: readonly NewProduct[],
): Promise<Outcome> {
  await stage(copy, products);
  const counts = await copy.run(sql`
    select count(*) filter (where product.pk is null),
      count(*) filter (where product.pk is not null and (product.name, product.price) is distinct from (staged.name, staged.price))
    from product_staged as staged left join product using (barcode)`);
  const [created = 0, changed = 0] = countsOf(counts);
  return { created, changed, unchanged: products.length - created - changed };
}

async function stage(
  copy: CopyTransaction,
  products: readonly NewProduct[],
  reserved?: Reserved,
): Promise<void> {
  await preferIndexLookups(copy);
  await copy.stage(
    'product_staged',
    STAGED,
    products.map(({ name, barcode, price }, place) => [
      String(place),
      name,
      barcode,
      price,
      reserved?.get(barcode) ?? NONE_RESERVED,
    ]),
  );
}

// The planner does not know that the new staging table is small and would read the whole catalogue
// for each batch.
async function preferIndexLookups(copy: CopyTransaction): Promise<void> {
  await copy.run(sql`
    select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`);
}

function countsOf([row = []]: readonly Cell[][]): number[] {
  return row.map(Number);
}
