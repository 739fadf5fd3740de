import type { Bulk } from '../../../database/copy.ts';
import { sql, type Cell } from '../../../database/sql.ts';
import { insertNew, reserveNew } from '../insert-sql.ts';
import type { NewProduct } from '../product.rules.ts';

/** What became of the rows of a batch, or would. */
export interface Outcome {
  created: number;
  changed: number;
  /** Those that say of a product what it already is. */
  left: number;
}

/** Primary keys that are reserved for products that are new, by barcode. */
export type Reserved = ReadonlyMap<string, string>;

const STAGED = { place: 'integer', name: 'text', barcode: 'text', price: 'numeric', reserved: 'integer' };
const NONE_RESERVED = '0';

/** Reserves primary keys for those of the products that are new, in their order. */
export async function reserve(bulk: Bulk, products: readonly NewProduct[]): Promise<Reserved> {
  await lookUpEach(bulk);
  const rows = await bulk.run(reserveNew(products.map(({ barcode }) => barcode)));
  return new Map(rows.map(([barcode, pk]) => [String(barcode), String(pk)]));
}

/**
 * Creates products, and changes those that have one of these barcodes, in the transaction at hand. No barcode may come twice. Whoever does this takes
 * what it locks in one order, so that none waits for another in a circle: first what is there, then what is not, each by barcode.
 */
export async function upsert(bulk: Bulk, products: readonly NewProduct[], now: Date, reserved?: Reserved): Promise<Outcome> {
  await stage(bulk, products, reserved);
  const changedBefore = await bulk.run(sql`
    with differing as materialized (
      select product.pk, staged.name, staged.price from product_staged as staged join product using (barcode)
      where (product.name, product.price) is distinct from (staged.name, staged.price) order by barcode for update of product
    ), changed as (
      update product set name = differing.name, price = differing.price, updated_at = ${now}::timestamptz
      from differing where product.pk = differing.pk returning product.pk
    )
    select count(*) from changed`);
  const made = await bulk.run(sql`
    with made as (
      ${insertNew(sql`select * from product_staged`, now, sql`nullif(reserved, 0)`)}
      on conflict (barcode) do update set name = excluded.name, price = excluded.price, updated_at = excluded.updated_at
        where (product.name, product.price) is distinct from (excluded.name, excluded.price)
      returning xmax = 0 as is_new
    )
    select count(*) filter (where is_new), count(*) filter (where not is_new) from made`);
  const [created = 0, changedMeanwhile = 0] = countsOf(made);
  const changed = (countsOf(changedBefore)[0] ?? 0) + changedMeanwhile;
  return { created, changed, left: products.length - created - changed };
}

/** What `upsert` would come to now, with nothing written. */
export async function foresee(bulk: Bulk, products: readonly NewProduct[]): Promise<Outcome> {
  await stage(bulk, products);
  const found = await bulk.run(sql`
    select count(*) filter (where product.pk is null),
      count(*) filter (where product.pk is not null and (product.name, product.price) is distinct from (staged.name, staged.price))
    from product_staged as staged left join product using (barcode)`);
  const [created = 0, changed = 0] = countsOf(found);
  return { created, changed, left: products.length - created - changed };
}

async function stage(bulk: Bulk, products: readonly NewProduct[], reserved?: Reserved): Promise<void> {
  await lookUpEach(bulk);
  await bulk.stage(
    'product_staged',
    STAGED,
    products.map(({ name, barcode, price }, place) => [String(place), name, barcode, price, reserved?.get(barcode) ?? NONE_RESERVED]),
  );
}

// A batch is little beside the catalogue, which the planner does not know of a table made a moment ago: it would read the whole catalogue for each.
async function lookUpEach(bulk: Bulk): Promise<void> {
  await bulk.run(sql`
    select set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)`);
}

function countsOf([row = []]: readonly Cell[][]): number[] {
  return row.map(Number);
}
