import { LockMode } from '@mikro-orm/postgresql';
import { z } from 'zod';
import { AuditSubjectKind } from '../audit/audit.entity.ts';
import { differences, note, type Subject } from '../audit/audit.log.ts';
import { once } from '../idempotency/idempotency.service.ts';
import { requireScope } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { readPage, readRowPage, type Page, type PageArgs, type RowPage } from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { readPk } from '../../core/pk.ts';
import { reading } from '../../request/on-replica.ts';
import { readRows, selectByPks, selectEntities, shapeOf, writeRows } from '../../database/row-mapper.ts';
import { readSlice, type Slice, type SliceArgs } from '../../pagination/offset-page.ts';
import { isTaken, join, identifier, sql, type Cell } from '../../database/sql.ts';
import { readTieredPage } from '../../pagination/ranked-list.ts';
import { check, defined } from '../../core/validation.ts';
import { ean13 } from './ean13.ts';
import { priceNumber } from './price.ts';
import { Product, productFromJson } from './product.entity.ts';
import type { ProductFilter, ProductInput, ProductOrder, ProductPatch } from './product.inputs.ts';
import { insertNoted } from './insert-sql.ts';
import { catalogue, listingOf } from './product-lists.ts';
import { barcodeTaken, newProduct, productFilter, productPatch, unknownProduct, type NewProduct } from './product.rules.ts';
import { foundBy, readSearch } from './search/product.search.ts';

const asked = z.object({ filter: productFilter.nullish() });
const named = z.object({ barcode: ean13 });

/**
 * A page of the products that meet the filter, by cursor: in order, or where it is searched and no order given, the best first. Throws
 * BAD_USER_INPUT.
 */
export async function page(ctx: Context, args: PageArgs, given?: ProductFilter | null, orderBy?: ProductOrder): Promise<Page<Product>> {
  const filter = check(asked, { filter: given }).filter ?? undefined;
  const at = reading(ctx);
  const search = filter?.search == null ? undefined : await readSearch(at, filter.search, args);
  return filter && search ? readTieredPage(at, foundBy(search, filter, orderBy), args) : readPage(at, listingOf(filter, orderBy), args);
}

/** As `page`, with rows of these properties in place of products. */
export function rowPage(ctx: Context, args: PageArgs, properties: readonly string[], orderBy?: ProductOrder | null): Promise<RowPage> {
  return readRowPage(reading(ctx), listingOf(undefined, orderBy), args, properties);
}

/** A slice of the catalogue by pk with the count of the whole, and of each product no more than these properties. */
export function slice<Key extends keyof Product>(ctx: Context, args: SliceArgs, only: readonly Key[]): Promise<Slice<Pick<Product, Key>>> {
  return readSlice(reading(ctx), catalogue, args, only);
}

/** The product that the text names by its pk, or null. */
export async function find(ctx: Context, pk: string): Promise<Product | null> {
  const number = readPk(pk);
  return number === undefined
    ? null
    : loader(ctx, 'products.byPk', (pks: readonly number[]) => selectByPks(reading(ctx), Product, pks)).load(number);
}

/** As `find`, with a row of these properties in place of the product; undefined where there is none. */
export async function findRow(ctx: Context, pk: string, properties: readonly string[]): Promise<readonly Cell[] | undefined> {
  const number = readPk(pk);
  if (number === undefined) return undefined;
  const shape = shapeOf(ctx, Product);
  const columns = join(properties.map((property) => shape.column(property)));
  const [row] = await readRows(reading(ctx), sql`select ${columns} from ${identifier(shape.table)} where pk = ${number}`, true);
  return row;
}

/** The product that the text names by its pk. Throws NOT_FOUND. */
export async function byPk(ctx: Context, pk: string): Promise<Product> {
  const product = await find(ctx, pk);
  if (!product) throw unknownProduct();
  return product;
}

/** The product with this barcode, or null. Throws BAD_USER_INPUT. */
export async function findByBarcode(ctx: Context, given: unknown): Promise<Product | null> {
  const { barcode } = check(named, { barcode: given });
  const [product] = await selectEntities(reading(ctx), Product, sql`barcode = ${barcode}`, true);
  return product ?? null;
}

/** Finds products for `node(id:)`. */
export function findNodes(ctx: Context, keys: readonly string[]): Promise<(Product | null)[]> {
  return selectByPks(reading(ctx), Product, keys);
}

/**
 * Adds a product; with an idempotency key, at most once for it. Needs `products:write`. Throws BAD_USER_INPUT, and
 * CONFLICT where another product has the barcode.
 */
export async function create(ctx: Context, input: ProductInput, idempotencyKey?: string): Promise<Product> {
  requireScope(ctx, 'products:write');
  const values = check(newProduct, input);
  const made = await refusingTaken(() => once(ctx, idempotencyKey, ['products.create', values], (tx) => insert(tx, values)));
  // An answer that was kept for its key has been JSON.
  return made instanceof Product ? made : productFromJson(made);
}

/** Changes what the patch names of a product. Needs `products:write`. Throws BAD_USER_INPUT, NOT_FOUND and CONFLICT. */
export async function update(ctx: Context, pk: string, patch: ProductPatch): Promise<Product> {
  requireScope(ctx, 'products:write');
  const values = check(productPatch, patch);
  return refusingTaken(() =>
    inTransaction(ctx, async (tx) => {
      const product = await locked(tx, pk);
      const before = factsOf(product);
      Object.assign(product, defined(values), { updatedAt: tx.now() });
      await tx.em.flush();
      const changes = differences(before, factsOf(product));
      if (changes.length > 0) await note(tx, 'product.changed', subjectOf(product), changes);
      return Object.assign(new Product(), plain(product));
    }),
  );
}

/** Deletes a product and returns what it was. Needs `products:write`. Throws NOT_FOUND. */
export async function remove(ctx: Context, pk: string): Promise<Product> {
  requireScope(ctx, 'products:write');
  return inTransaction(ctx, async (tx) => {
    const product = await locked(tx, pk);
    const was = Object.assign(new Product(), plain(product));
    await tx.em.remove(product).flush();
    await note(tx, 'product.deleted', subjectOf(was), differences(factsOf(was), {}));
    return was;
  });
}

// One statement, which needs no transaction around it. A barcode that is known to be taken uses up no primary key.
async function insert(ctx: Context, { name, barcode, price }: NewProduct): Promise<Product> {
  const now = ctx.now();
  const shape = shapeOf(ctx, Product);
  const insertion = sql`
    insert into product (name, barcode, price, created_at, updated_at)
    select ${name}, ${barcode}, ${price}::numeric, ${now}::timestamptz, ${now}::timestamptz
    where not exists (select from product where barcode = ${barcode})`;
  const [row] = await writeRows(ctx, insertNoted(ctx, insertion, shape.columns));
  if (!row) throw barcodeTaken();
  return shape.entity(row);
}

async function locked(tx: Context, pk: string): Promise<Product> {
  const number = readPk(pk);
  const product = number === undefined ? null : await tx.em.findOne(Product, { pk: number }, { lockMode: LockMode.PESSIMISTIC_WRITE });
  if (!product) throw unknownProduct();
  return product;
}

function plain({ pk, name, barcode, price, createdAt, updatedAt }: Product) {
  return { pk, name, barcode, price, createdAt, updatedAt };
}

function subjectOf({ pk, name }: Product): Subject {
  return { kind: AuditSubjectKind.PRODUCT, key: pk, name };
}

// As the trail has them: prices alike, however they were once stored.
function factsOf({ name, barcode, price }: Product) {
  return { name, barcode, price: priceNumber(price).toFixed(2) };
}

// Asking first would not help: between the question and the write, another may take the barcode. The index decides.
async function refusingTaken<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw isTaken(error) ? barcodeTaken() : error;
  }
}
