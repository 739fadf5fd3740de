import { expressionBuilder, sql } from 'kysely';
import { run, runStatement, statementOf, type Columns } from '../../../database/kysely.ts';
import type { Context } from '../../../request/context.ts';
import { FIELDS, kindOf } from '../product.columns.ts';
import type { Product } from '../product.entity.ts';
import type { NewProduct, ProductField } from '../product.rules.ts';

/** Row counts of a batch, by result. */
export interface Outcome {
  created: number;
  changed: number;
  /** Equal to the stored product. */
  unchanged: number;
}

interface Tables {
  product: Columns<Product>;
  staged: Pick<Columns<Product>, ProductField> & { place: number };
  added: Pick<Columns<Product>, 'pk' | ProductField>;
  differing: Tables['product'];
  excluded: Tables['product'];
}

const eb = expressionBuilder<Tables, keyof Tables>();

/** The fields that an import changes. It finds a product by the other, its barcode. */
const UPDATED = FIELDS.filter((field) => field !== 'barcode');

/**
 * The planner does not know how small a batch is beside the catalogue, and would read the whole
 * catalogue for each.
 */
const TURNED_OFF = ['enable_hashjoin', 'enable_mergejoin', 'jit'];

/**
 * Creates products and updates those with the same barcodes, in this transaction. Barcodes must be
 * unique. Primary keys follow the order of the products. Locks existing products first, then new
 * ones, each by barcode, so that concurrent calls cannot deadlock.
 */
export async function upsert(tx: Context, products: readonly NewProduct[]): Promise<Outcome> {
  await stageProducts(tx, products);
  const db = tx.em.getKysely<Tables>();
  const now = tx.now();
  const [updated] = await run(
    tx,
    db
      .with(
        (cte) => cte('differing').materialized(),
        (from) =>
          from
            .selectFrom('staged')
            .innerJoin('product', 'product.barcode', 'staged.barcode')
            .select(['product.pk', ...UPDATED.map((field) => `staged.${field}` as const)])
            .where(differsFrom('staged'))
            .orderBy('product.barcode')
            .forUpdate('product'),
      )
      .updateTable('product')
      .from('differing')
      .set({ ...valuesOf('differing'), updated_at: now })
      .whereRef('product.pk', '=', 'differing.pk'),
  );
  const isStored = eb.exists(
    db.selectFrom('product').whereRef('product.barcode', '=', eb.ref('staged.barcode')),
  );
  // Only new products use primary keys, because imports of known products would exhaust them.
  const added = db
    .selectFrom('staged')
    .select([eb.fn<number>('nextval', [eb.val('product_pk_seq')]).as('pk'), ...FIELDS])
    .where(eb.not(isStored))
    .orderBy('place');
  const [made] = await run(
    tx,
    db
      .with(
        (cte) => cte('added').materialized(),
        () => added,
      )
      .with('made', (into) =>
        into
          .insertInto('product')
          .columns(['pk', ...FIELDS, 'created_at', 'updated_at'])
          .expression(
            into
              .selectFrom('added')
              .select(['pk', ...FIELDS, eb.val(now).as('created_at'), eb.val(now).as('updated_at')])
              .orderBy('barcode'),
          )
          .onConflict((taken) =>
            taken
              .column('barcode')
              .doUpdateSet({ ...valuesOf('excluded'), updated_at: now })
              .where(differsFrom('excluded')),
          )
          // The system column of the transaction that updated the row.
          .returning(sql<boolean>`xmax = 0`.as('is_new')),
      )
      .selectFrom('made')
      .select(({ fn }) => [
        fn.countAll<number>().filterWhere('is_new', '=', true).as('created'),
        fn.countAll<number>().filterWhere('is_new', '=', false).as('changed'),
      ]),
  );
  const created = made?.created ?? 0;
  const changed = Number(updated?.numUpdatedRows) + (made?.changed ?? 0);
  return { created, changed, unchanged: products.length - created - changed };
}

/** Returns what `upsert` would return now, without writing products. */
export async function planUpsert(tx: Context, products: readonly NewProduct[]): Promise<Outcome> {
  await stageProducts(tx, products);
  const counts = tx.em
    .getKysely<Tables>()
    .selectFrom('staged')
    .leftJoin('product', 'product.barcode', 'staged.barcode')
    .select(({ fn }) => [
      fn.countAll<number>().filterWhere('product.pk', 'is', null).as('created'),
      fn
        .countAll<number>()
        .filterWhere('product.pk', 'is not', null)
        .filterWhere(differsFrom('staged'))
        .as('changed'),
    ]);
  const [{ created, changed } = { created: 0, changed: 0 }] = await run(tx, counts);
  return { created, changed, unchanged: products.length - created - changed };
}

// Writes the products into a temporary table, by a list for each column: a statement has at most
// 65,535 parameters. The end of the transaction drops the table.
async function stageProducts(tx: Context, products: readonly NewProduct[]): Promise<void> {
  const db = tx.em.getKysely<Tables>();
  const settings = TURNED_OFF.map((name) =>
    eb.fn('set_config', [eb.val(name), eb.val('off'), eb.lit(true)]).as(name),
  );
  await run(tx, db.selectNoFrom(settings));
  const columns = FIELDS.map((name) => ({
    name,
    type: kindOf(name).type,
    values: products.map((product) => product[name]),
  }));
  const create = columns.reduce(
    (table, { name, type }) => table.addColumn(name, type),
    db.schema.createTable('staged').temporary().onCommit('drop'),
  );
  await run(tx, create.addColumn('place', 'bigint'));
  const lists = columns.map(({ type, values }) => sql`${values}::${sql.raw(type)}[]`);
  const rows = sql`select * from unnest(${sql.join(lists)}) with ordinality`;
  await runStatement(tx, statementOf(sql`insert into staged ${rows}`));
}

function differsFrom(table: 'staged' | 'excluded') {
  return eb.or(
    UPDATED.map((field) => eb(`product.${field}`, 'is distinct from', eb.ref(`${table}.${field}`))),
  );
}

function valuesOf(table: 'differing' | 'excluded') {
  return Object.fromEntries(UPDATED.map((field) => [field, eb.ref(`${table}.${field}`)]));
}
