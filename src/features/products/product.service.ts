import { LockMode } from '@mikro-orm/postgresql';
import { z } from 'zod';
import { AuditSubjectKind, type AuditedChange } from '../audit/audit.entity.ts';
import { diff, entryOf, record, type Subject } from '../audit/audit.log.ts';
import { idempotent } from '../idempotency/idempotency.service.ts';
import { requireScope } from '../../request/access.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { findInList, readPage, type Page, type PageArgs } from '../../pagination/keyset.ts';
import { loader } from '../../request/loaders.ts';
import { readPk } from '../../core/pk.ts';
import { onReplica } from '../../request/on-replica.ts';
import {
  builder,
  runStatement,
  type Query,
  cachedStatement,
  columnsOf,
  entityOf,
  readRows,
} from '../../database/kysely.ts';
import { readOffsetPage, type OffsetPage, type OffsetPageArgs } from '../../api/offset-page.ts';
import { isUniqueViolation, preparedWrites } from '../../database/sql.ts';
import { check, defined } from '../../core/validation.ts';
import { ean13 } from './ean13.ts';
import { mapFields } from './product.columns.ts';
import { Product, productFromJson } from './product.entity.ts';
import type { ProductFilter, ProductInput, ProductOrder, ProductPatch } from './product.inputs.ts';
import { catalogue, listDefinitionOf, listed } from './product-lists.ts';
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
 * best matches first. They have the properties of `base`. Throws BAD_USER_INPUT.
 */
export async function page(
  ctx: Context,
  args: PageArgs,
  given?: ProductFilter | null,
  orderBy?: ProductOrder | null,
  base = catalogue,
): Promise<Page<Product>> {
  const replicaCtx = onReplica(ctx);
  if (!given && !orderBy) return readPage(replicaCtx, base, args);
  const { properties } = base;
  const list = await listOf(replicaCtx, args, given, orderBy);
  return readPage(replicaCtx, { ...list, ...(properties && { properties }) }, args);
}

async function listOf(
  ctx: Context,
  args: PageArgs,
  given: ProductFilter | null | undefined,
  orderBy: ProductOrder | null | undefined,
) {
  const filter = check(pageInput, { filter: given }).filter ?? undefined;
  const search = filter?.search == null ? undefined : await readSearch(ctx, filter.search, args);
  return filter && search
    ? searchResults(search, filter, orderBy)
    : listDefinitionOf(filter, orderBy);
}

/** Returns an offset page of the LISTED catalogue by pk with the total count. */
export function offsetPage(ctx: Context, args: OffsetPageArgs): Promise<OffsetPage<Product>> {
  return readOffsetPage(onReplica(ctx), listed, args);
}

/** Returns the product with this pk, or null. Look-ups of one tick are one statement. */
export async function find(ctx: Context, pk: string): Promise<Product | null> {
  const number = readPk(pk);
  if (number === undefined) return null;
  return loader(ctx, 'products.byPk', (pks: readonly number[]) =>
    findInList(onReplica(ctx), catalogue, pks),
  ).load(number);
}

/** Returns the product with this pk, or null, by its own statement, with the properties of `base`. */
export async function read(ctx: Context, pk: string, base = catalogue): Promise<Product | null> {
  const [product = null] = await findInList(onReplica(ctx), base, [pk]);
  return product;
}

/** Returns the LISTED product with this pk. Throws NOT_FOUND. */
export async function byPk(ctx: Context, pk: string): Promise<Product> {
  const product = await read(ctx, pk, listed);
  if (!product) throw unknownProduct();
  return product;
}

/** Returns the product with this barcode, or null. Throws BAD_USER_INPUT. */
export async function findByBarcode(ctx: Context, given: unknown): Promise<Product | null> {
  const { barcode } = check(barcodeInput, { barcode: given });
  const statement = cachedStatement('product by barcode', [barcode], () =>
    builder.selectFrom('product').select(columnsOf(ctx, Product)).where('barcode', '=', barcode),
  );
  const [row] = await readRows(onReplica(ctx), statement, true);
  return row ? entityOf(Product, row) : null;
}

/** Finds products for `node(id:)`. */
export function findNodes(ctx: Context, keys: readonly string[]): Promise<(Product | null)[]> {
  return findInList(onReplica(ctx), catalogue, keys);
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
    idempotent(ctx, idempotencyKey, ['products.create', values], (outer) => insert(outer, values)),
  );
  // A stored response is JSON.
  return created instanceof Product ? created : productFromJson(created);
}

/**
 * Changes the fields of a product that the patch has. A patch without a change changes nothing. Needs
 * `products:write`. Throws BAD_USER_INPUT, NOT_FOUND and CONFLICT.
 */
export async function update(ctx: Context, pk: string, patch: ProductPatch): Promise<Product> {
  requireScope(ctx, 'products:write');
  const values = check(productPatch, patch);
  return rejectingTakenBarcode(() =>
    inTransaction(ctx, async (tx) => {
      const product = await findForUpdate(tx, pk);
      const before = auditedValues(product);
      Object.assign(product, defined(values));
      const changes = diff(before, auditedValues(product));
      if (changes.length === 0) return product;
      product.updatedAt = tx.now();
      await tx.em.flush();
      await record(tx, 'product.changed', subjectOf(product), changes);
      return product;
    }),
  );
}

/** Deletes a product and returns it. Needs `products:write`. Throws NOT_FOUND. */
export async function remove(ctx: Context, pk: string): Promise<Product> {
  requireScope(ctx, 'products:write');
  return inTransaction(ctx, async (tx) => {
    const product = await findForUpdate(tx, pk);
    await tx.em.nativeDelete(Product, { pk: product.pk });
    await record(tx, 'product.deleted', subjectOf(product), diff(auditedValues(product), {}));
    return product;
  });
}

// One statement, whose text is cached, instead of a transaction of the ORM: twice as many creations
// per second (docs/performance.md).
async function insert(ctx: Context, values: NewProduct): Promise<Product> {
  const now = ctx.now();
  const row = { ...values, created_at: now, updated_at: now };
  const product = entityOf(Product, { ...values, createdAt: now, updatedAt: now });
  const { subject, changes } = creationOf(product);
  const { subject_key: _none, ...entry } = entryOf(ctx, 'product.created', subject, changes);
  const statement = cachedStatement(
    `create ${keysOf(row).join()} ${keysOf(entry).join()}`,
    [...Object.values(row), values.barcode, ...Object.values(entry)],
    () => insertWithEntry(row, entry),
  );
  // A fifth of the time is for planning.
  if (!preparedWrites.has(statement.text))
    preparedWrites.set(statement.text, `create${preparedWrites.size}`);
  const [made] = (await runStatement<Pick<Product, 'pk'>>(ctx, statement)).rows;
  if (!made) throw barcodeTaken();
  if (ctx.statements) ctx.statements.commits++;
  return Object.assign(product, { pk: made.pk });
}

// With VALUES, a barcode that is taken would use up a primary key. The unique index decides between
// concurrent creations.
function insertWithEntry(
  row: NewProduct & Record<string, unknown>,
  entry: Readonly<Record<string, unknown>>,
): Query {
  const columns = keysOf(row);
  const entryColumns = keysOf(entry);
  return builder
    .with('made', (db) =>
      db
        .insertInto('product')
        .columns(columns)
        .expression(
          db
            .selectNoFrom((eb) => columns.map((column) => eb.val(row[column]).as(column)))
            .where((eb) =>
              eb.not(eb.exists(db.selectFrom('product').where('barcode', '=', row.barcode))),
            ),
        )
        .returning('pk'),
    )
    .with('recorded', (db) =>
      db
        .insertInto('audit_entry')
        .columns([...entryColumns, 'subject_key'])
        .expression(
          db
            .selectFrom('made')
            .select((eb) => entryColumns.map((column) => eb.val(entry[column]).as(column)))
            .select((eb) => eb.cast<string>('made.pk', 'text').as('subject_key')),
        ),
    )
    .selectFrom('made')
    .select('pk');
}

function keysOf<T extends object>(row: T): (keyof T & string)[] {
  return Object.keys(row) as (keyof T & string)[];
}

/** Returns the audit entry of a creation. */
export function creationOf(product: Product): { subject: Subject; changes: AuditedChange[] } {
  return { subject: subjectOf(product), changes: diff({}, auditedValues(product)) };
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

function subjectOf({ pk, name }: Product): Subject {
  return { kind: AuditSubjectKind.PRODUCT, key: pk, name };
}

// As in the audit trail: equal prices are equal text, whatever their stored scale.
function auditedValues(product: Product): Record<string, string | null> {
  return mapFields(product, ({ audited }, value) => audited(value));
}

// A check before the write would race with other requests: the unique index decides.
async function rejectingTakenBarcode<T>(write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    throw isUniqueViolation(error, 'product_barcode_unique') ? barcodeTaken() : error;
  }
}
