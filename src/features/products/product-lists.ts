import type { OrderColumn } from '../../pagination/cursor.ts';
import type { Listing } from '../../pagination/keyset.ts';
import { join, sql, type Sql } from '../../database/sql.ts';
import { Product } from './product.entity.ts';
import { OrderDirection, ProductOrderField, type ProductOrder } from './product.inputs.ts';
import type { CheckedFilter } from './product.rules.ts';

const ORDERS: Record<ProductOrderField, OrderColumn> = {
  [ProductOrderField.PK]: { property: 'pk', kind: 'pk' },
  [ProductOrderField.NAME]: { property: 'nameKey', kind: 'text' },
  [ProductOrderField.PRICE]: { property: 'price', kind: 'decimal' },
  [ProductOrderField.CREATED_AT]: { property: 'createdAt', kind: 'time' },
  [ProductOrderField.UPDATED_AT]: { property: 'updatedAt', kind: 'time' },
};

/** Where the database counts the products (pagination/row-counts.ts). */
export const PRODUCT_TALLY = 'product_tally';

/** The whole catalogue by pk. */
export const catalogue: Listing<Product> = {
  name: 'products',
  entity: Product,
  order: [{ property: 'pk', kind: 'pk' }],
  tally: PRODUCT_TALLY,
};

/** The catalogue as the filter narrows and the order sorts it; by pk where no order is given. `found` is what the filter's search finds. */
export function listingOf(filter: CheckedFilter | undefined, orderBy: ProductOrder | null | undefined, found?: Sql): Listing<Product> {
  const { field = ProductOrderField.PK, direction } = orderBy ?? {};
  const order = ORDERS[field];
  const conditions = conditionsOf(filter ?? {});
  const range = conditions.filter(({ on }) => on === field).map(({ sql: condition }) => condition);
  const others = conditions.filter(({ on }) => on !== field).map(({ sql: condition }) => condition);
  const where = found ? [found, ...others] : others;
  return {
    ...catalogue,
    order: order.property === 'pk' ? [order] : [order, { property: 'pk', kind: 'pk' }],
    descending: direction === OrderDirection.DESC,
    ...(range.length > 0 && { range: join(range, ' and ') }),
    ...(where.length > 0 && { where: join(where, ' and ') }),
    ...(filter?.barcodeIn && { isFew: true }),
    filter,
  };
}

/** A condition of a filter, and the order whose index it is a range of, where it is one. */
interface Condition {
  sql: Sql;
  on?: ProductOrderField;
}

function conditionsOf({ nameContains, barcodeIn, priceMin, priceMax, createdSince, updatedSince }: CheckedFilter): Condition[] {
  const found: Condition[] = [];
  if (nameContains != null) found.push({ sql: sql`name_key like ${containing(nameContains)}` });
  if (barcodeIn != null) found.push({ sql: sql`barcode = any(${barcodeIn}::text[])` });
  if (priceMin != null) found.push({ sql: sql`price >= ${priceMin}::numeric`, on: ProductOrderField.PRICE });
  if (priceMax != null) found.push({ sql: sql`price <= ${priceMax}::numeric`, on: ProductOrderField.PRICE });
  if (createdSince != null) found.push({ sql: sql`created_at >= ${createdSince}::timestamptz`, on: ProductOrderField.CREATED_AT });
  if (updatedSince != null) found.push({ sql: sql`updated_at >= ${updatedSince}::timestamptz`, on: ProductOrderField.UPDATED_AT });
  return found;
}

// Folded first: some letters fold to signs that mean something to LIKE.
function containing(text: string): Sql {
  return sql`'%' || regexp_replace(search_fold(${text}), '([\\\\%_])', '\\\\\\1', 'g') || '%'`;
}
