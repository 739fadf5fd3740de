import { LockMode } from '@mikro-orm/postgresql';
import { z } from 'zod';
import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { diff, record, type Subject } from '../audit/audit.log.ts';
import { idempotent } from '../idempotency/idempotency.service.ts';
import { requireScope } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import {
  readPage,
  readRowPage,
  type Page,
  type PageArgs,
  type RowPage,
} from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { readPk } from '../../core/pk.ts';
import { onReplica } from '../../request/on-replica.ts';
import {
  readRows,
  selectByPks,
  selectEntities,
  shapeOf,
  writeRows,
} from '../../database/row-mapper.ts';
import {
  readOffsetPage,
  type OffsetPage,
  type OffsetPageArgs,
} from '../../pagination/offset-page.ts';
import { isUniqueViolation, join, identifier, sql, type Cell } from '../../database/sql.ts';
import { readRankedPage } from '../../pagination/ranked-list.ts';
import { mergeRowCounts } from '../../pagination/row-counts.ts';
import { check, defined } from '../../core/validation.ts';
import { ean13 } from './ean13.ts';
import { mapFields, valuesOf } from './product.columns.ts';
import { Product, productFromJson } from './product.entity.ts';
import type { ProductFilter, ProductInput, ProductOrder, ProductPatch } from './product.inputs.ts';
import { insertNew, insertWithAudit } from './insert-sql.ts';
import { catalogue, listDefinitionOf, PRODUCT_ROW_COUNTS } from './product-lists.ts';
import {
  barcodeTaken,
  newProduct,
  productFilter,
  productPatch,
  unknownProduct,
  type NewProduct,
} from './product.rules.ts';
import { searchResults, readSearch } from './search/product.search.ts';

const pageInput = z.object({ filter: productFilter.nullish() });
const barcodeInput = z.object({ barcode: ean13 });

/**
 * Returns a cursor page of the products that meet the filter. A search without an order returns the
 * best matches first. Throws BAD_USER_INPUT.
 */
export async function page(
  ctx: Context,
  args: PageArgs,
  given?: ProductFilter | null,
  orderBy?: ProductOrder,
): Promise<Page<Product>> {
  const filter = check(pageInput, { filter: given }).filter ?? undefined;
  const replicaCtx = onReplica(ctx);
  const search =
    filter?.search == null ? undefined : await readSearch(replicaCtx, filter.search, args);
  return filter && search
    ? readRankedPage(replicaCtx, searchResults(search, filter, orderBy), args)
    : readPage(replicaCtx, listDefinitionOf(filter, orderBy), args);
}

/** As `page` without a filter, with rows of these properties instead of products. */
export function rowPage(
  ctx: Context,
  args: PageArgs,
  properties: readonly string[],
  orderBy?: ProductOrder | null,
): Promise<RowPage> {
  return readRowPage(onReplica(ctx), listDefinitionOf(undefined, orderBy), args, properties);
}

/** Returns an offset page of the catalogue by pk with the total count and these properties. */
export function offsetPage<Key extends keyof Product>(
  ctx: Context,
  args: OffsetPageArgs,
  only: readonly Key[],
): Promise<OffsetPage<Pick<Product, Key>>> {
  return readOffsetPage(onReplica(ctx), catalogue, args, only);
}

/** Returns the product with this pk, or null. */
export async function find(ctx: Context, pk: string): Promise<Product | null> {
  const number = readPk(pk);
  return number === undefined
    ? null
    : loader(ctx, 'products.byPk', (pks: readonly number[]) =>
        selectByPks(onReplica(ctx), Product, pks),
      ).load(number);
}

/** As `find`, with a row of these properties instead of the product; undefined if there is none. */
export async function findRow(
  ctx: Context,
  pk: string,
  properties: readonly string[],
): Promise<readonly Cell[] | undefined> {
  const number = readPk(pk);
  if (number === undefined) return undefined;
  const shape = shapeOf(ctx, Product);
  const columns = join(properties.map((property) => shape.column(property)));
  const [row] = await readRows(
    onReplica(ctx),
    sql`select ${columns} from ${identifier(shape.table)} where pk = ${number}`,
    true,
  );
  return row;
}

/** Returns the product with this pk. Throws NOT_FOUND. */
export async function byPk(ctx: Context, pk: string): Promise<Product> {
  const product = await find(ctx, pk);
  if (!product) throw unknownProduct();
  return product;
}

/** Returns the product with this barcode, or null. Throws BAD_USER_INPUT. */
export async function findByBarcode(ctx: Context, given: unknown): Promise<Product | null> {
  const { barcode } = check(barcodeInput, { barcode: given });
  const [product] = await selectEntities(onReplica(ctx), Product, sql`barcode = ${barcode}`, true);
  return product ?? null;
}

/** Finds products for `node(id:)`. */
export function findNodes(ctx: Context, keys: readonly string[]): Promise<(Product | null)[]> {
  return selectByPks(onReplica(ctx), Product, keys);
}

/**
 * Adds a product; at most once per idempotency key. Needs `products:write`. Throws BAD_USER_INPUT,
 * and CONFLICT if another product has the barcode.
 */
export async function create(
  ctx: Context,
  input: Partial<ProductInput>,
  idempotencyKey?: string,
): Promise<Product> {
  requireScope(ctx, 'products:write');
  const values = check(newProduct, input);
  const created = await rejectingTakenBarcode(() =>
    idempotent(ctx, idempotencyKey, ['products.create', values], (tx) => insert(tx, values)),
  );
  // A stored response is JSON.
  return created instanceof Product ? created : productFromJson(created);
}

/**
 * Changes the fields of a product that the patch has. Needs `products:write`. Throws
 * BAD_USER_INPUT, NOT_FOUND and CONFLICT.
 */
export async function update(ctx: Context, pk: string, patch: ProductPatch): Promise<Product> {
  requireScope(ctx, 'products:write');
  const values = check(productPatch, patch);
  return rejectingTakenBarcode(() =>
    inTransaction(ctx, async (tx) => {
      const product = await findForUpdate(tx, pk);
      const before = auditedValues(product);
      Object.assign(product, defined(values), { updatedAt: tx.now() });
      await tx.em.flush();
      const changes = diff(before, auditedValues(product));
      if (changes.length > 0) await record(tx, 'product.changed', subjectOf(product), changes);
      return detached(tx, product);
    }),
  );
}

/** Deletes a product and returns it. Needs `products:write`. Throws NOT_FOUND. */
export async function remove(ctx: Context, pk: string): Promise<Product> {
  requireScope(ctx, 'products:write');
  return inTransaction(ctx, async (tx) => {
    const product = await findForUpdate(tx, pk);
    const deleted = detached(tx, product);
    await tx.em.remove(product).flush();
    await record(tx, 'product.deleted', subjectOf(deleted), diff(auditedValues(deleted), {}));
    return deleted;
  });
}

// One statement, so no transaction is needed. A barcode that is already taken uses no primary key.
async function insert(ctx: Context, values: NewProduct): Promise<Product> {
  const shape = shapeOf(ctx, Product);
  const insertSql = insertNew(sql`select ${valuesOf(values)}, 1 as place`, ctx.now());
  const [row] = await writeRows(ctx, insertWithAudit(ctx, insertSql, shape.columns));
  if (!row) throw barcodeTaken();
  return shape.entity(row);
}

/** Merges the row counts that concurrent writers have split. Returns the number of rows saved. */
export function sweep(ctx: Context): Promise<number> {
  return mergeRowCounts(ctx, PRODUCT_ROW_COUNTS);
}

async function findForUpdate(tx: Context, pk: string): Promise<Product> {
  const number = readPk(pk);
  const product =
    number === undefined
      ? null
      : await tx.em.findOne(Product, { pk: number }, { lockMode: LockMode.PESSIMISTIC_WRITE });
  if (!product) throw unknownProduct();
  return product;
}

// The ORM tracks a managed entity.
function detached(ctx: Context, product: Product): Product {
  const properties = shapeOf(ctx, Product).properties as (keyof Product)[];
  const values = Object.fromEntries(properties.map((name) => [name, product[name]]));
  return Object.assign(new Product(), values);
}

function subjectOf({ pk, name }: Product): Subject {
  return { kind: AuditSubjectKind.PRODUCT, key: pk, name };
}

// As in the audit trail: equal prices are equal text, whatever their stored scale.
function auditedValues(product: Product): Record<string, string | null> {
  return mapFields(product, ({ auditedText }, value) => auditedText(value));
}

// A check before the write would race with other requests: the unique index decides.
async function rejectingTakenBarcode<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw isUniqueViolation(error, 'product_barcode_unique') ? barcodeTaken() : error;
  }
}
