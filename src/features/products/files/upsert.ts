import type { CopyTransaction } from '../../../database/copy.ts';
import { identifier, join, sql, type Cell, type Sql } from '../../../database/sql.ts';
import { insertNew, reserveNew } from '../insert-sql.ts';
import { columnsOf, FIELDS, kindOf } from '../product.columns.ts';
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
  ...Object.fromEntries(FIELDS.map((field) => [field, kindOf(field).type])),
  reserved: 'bigint',
};
const NONE_RESERVED = '0';
/** The fields that an import changes. It finds a product by the other, its barcode. */
const UPDATED = FIELDS.filter((field) => field !== 'barcode');

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
      select product.pk, ${columnsOf('staged', UPDATED)} from product_staged as staged join product using (barcode)
      where ${differsFrom('staged')} order by barcode for update of product
    ), changed as (
      update product set ${assignedFrom('differing')}, updated_at = ${now}::timestamptz
      from differing where product.pk = differing.pk returning product.pk
    )
    select count(*) from changed`);
  const upserted = await copy.run(sql`
    with made as (
      ${insertNew(sql`select * from product_staged`, now, sql`nullif(reserved, 0)`)}
      on conflict (barcode) do update set ${assignedFrom('excluded')}, updated_at = excluded.updated_at
        where ${differsFrom('excluded')}
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
      count(*) filter (where product.pk is not null and ${differsFrom('staged')})
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
    products.map((product, place) => [
      String(place),
      ...FIELDS.map((field) => product[field] ?? null),
      reserved?.get(product.barcode) ?? NONE_RESERVED,
    ]),
  );
}

function differsFrom(table: string): Sql {
  return sql`(${columnsOf('product', UPDATED)}) is distinct from (${columnsOf(table, UPDATED)})`;
}

function assignedFrom(table: string): Sql {
  return join(UPDATED.map((field) => sql`${identifier(field)} = ${identifier(table, field)}`));
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
