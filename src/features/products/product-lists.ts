import type { OrderColumn } from '../../pagination/cursor.ts';
import type { ListDefinition } from '../../pagination/keyset.ts';
import { join, sql, type Sql } from '../../database/sql.ts';
import { Product } from './product.entity.ts';
import { OrderDirection, ProductOrderField, type ProductOrder } from './product.inputs.ts';
import type { CheckedFilter } from './product.rules.ts';

/** A property that no product lacks: rows after a null cannot be compared with it. */
type NeverNull = {
  [Name in keyof Product]: null extends Product[Name] ? never : Name;
}[keyof Product];

const ORDERS: Record<ProductOrderField, OrderColumn & { property: NeverNull }> = {
  [ProductOrderField.PK]: { property: 'pk', kind: 'pk' },
  [ProductOrderField.NAME]: { property: 'nameKey', kind: 'text' },
  [ProductOrderField.PRICE]: { property: 'price', kind: 'decimal' },
  [ProductOrderField.CREATED_AT]: { property: 'createdAt', kind: 'time' },
  [ProductOrderField.UPDATED_AT]: { property: 'updatedAt', kind: 'time' },
};

/** Table with the row counts of the products (pagination/row-counts.ts). */
export const PRODUCT_ROW_COUNTS = 'product_row_count';

/** The whole catalogue, ordered by pk. */
export const catalogue: ListDefinition<Product> = {
  name: 'products',
  entity: Product,
  order: [{ property: 'pk', kind: 'pk' }],
  rowCounts: PRODUCT_ROW_COUNTS,
};

/** Returns the filtered catalogue in this order, by default by pk; `searched` is a condition. */
export function listDefinitionOf(
  filter: CheckedFilter | undefined,
  orderBy: ProductOrder | null | undefined,
  searched?: Sql,
): ListDefinition<Product> {
  const { field = ProductOrderField.PK, direction } = orderBy ?? {};
  const order = ORDERS[field];
  const conditions = conditionsOf(filter ?? {});
  const range = conditions.filter(({ on }) => on === field).map(({ sql: condition }) => condition);
  const others = conditions.filter(({ on }) => on !== field).map(({ sql: condition }) => condition);
  const where = searched ? [searched, ...others] : others;
  return {
    ...catalogue,
    order: order.property === 'pk' ? [order] : [order, { property: 'pk', kind: 'pk' }],
    descending: direction === OrderDirection.DESC,
    ...(range.length > 0 && { range: join(range, ' and ') }),
    ...(where.length > 0 && { where: join(where, ' and ') }),
    ...(filter?.barcodeIn && { isSelective: true }),
    filter,
  };
}

/** A condition of a filter; `on` is the order whose index it is a range of. */
interface Condition {
  sql: Sql;
  on?: ProductOrderField;
}

/** The condition of each field of a filter but `search` (search/product.search.ts). */
const CONDITIONS: {
  [Name in Exclude<keyof CheckedFilter, 'search'>]-?: (
    value: NonNullable<CheckedFilter[Name]>,
  ) => Condition;
} = {
  nameContains: (text) => ({ sql: matches(text) }),
  barcodeIn: (barcodes) => ({ sql: sql`barcode = any(${barcodes}::text[])` }),
  priceMin: (price) => ({ sql: sql`price >= ${price}::numeric`, on: ProductOrderField.PRICE }),
  priceMax: (price) => ({ sql: sql`price <= ${price}::numeric`, on: ProductOrderField.PRICE }),
  createdSince: (time) => ({
    sql: sql`created_at >= ${time}::timestamptz`,
    on: ProductOrderField.CREATED_AT,
  }),
  updatedSince: (time) => ({
    sql: sql`updated_at >= ${time}::timestamptz`,
    on: ProductOrderField.UPDATED_AT,
  }),
};

function conditionsOf(filter: CheckedFilter): Condition[] {
  return Object.entries(CONDITIONS).flatMap(([name, condition]) => {
    const value = filter[name as keyof CheckedFilter];
    return value == null ? [] : [(condition as (of: unknown) => Condition)(value)];
  });
}

// The function behind LIKE uses no index. For a text without three letters, the index has to be read
// as a whole, which takes several times as long as the names.
function matches(text: string): Sql {
  return (text.match(/[\p{L}\p{N}]/gu)?.length ?? 0) < 3
    ? sql`textlike(name_key, ${patternOf(text)})`
    : sql`name_key like ${patternOf(text)}`;
}

// Escapes after folding, because some letters fold to special characters of LIKE.
function patternOf(text: string): Sql {
  return sql`'%' || regexp_replace(search_fold(${text}), '([\\\\%_])', '\\\\\\1', 'g') || '%'`;
}
