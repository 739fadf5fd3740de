import { expressionBuilder, sql, type Expression, type SqlBool } from 'kysely';
import type { OrderColumn } from '../../pagination/cursor.ts';
import type { ListDefinition } from '../../pagination/keyset.ts';
import type { Columns } from '../../database/kysely.ts';
import { Product } from './product.entity.ts';
import { OrderDirection, ProductOrderField, type ProductOrder } from './product.inputs.ts';
import { FIELDS } from './product.columns.ts';
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

const eb = expressionBuilder<{ product: Columns<Product> }, 'product'>();

/** Table with the row counts of the products (pagination/row-counts.ts). */
export const PRODUCT_ROW_COUNTS = 'product_row_count';

/** The properties of a product in a list of the interface. Times take a sixth of the work of a page. */
export const LISTED: readonly string[] = ['pk', ...FIELDS];

/** The whole catalogue, ordered by pk. */
export const catalogue: ListDefinition<Product> = {
  name: 'products',
  entity: Product,
  order: [{ property: 'pk', kind: 'pk' }],
  rowCounts: PRODUCT_ROW_COUNTS,
};

/** The catalogue with the properties of the interface only. */
export const listed: ListDefinition<Product> = { ...catalogue, properties: LISTED };

/** Returns the filtered catalogue in this order, by default by pk; `searched` is a condition. */
export function listDefinitionOf(
  filter: CheckedFilter | undefined,
  orderBy: ProductOrder | null | undefined,
  searched?: Expression<SqlBool>,
): ListDefinition<Product> {
  const { field = ProductOrderField.PK, direction } = orderBy ?? {};
  const order = ORDERS[field];
  const conditions = conditionsOf(filter ?? {});
  const range = conditions.filter(({ on }) => on === field).map(({ is }) => is);
  const others = conditions.filter(({ on }) => on !== field).map(({ is }) => is);
  const where = searched ? [searched, ...others] : others;
  return {
    ...catalogue,
    order: order.property === 'pk' ? [order] : [order, { property: 'pk', kind: 'pk' }],
    descending: direction === OrderDirection.DESC,
    ...(range.length > 0 && { range: eb.and(range) }),
    ...(where.length > 0 && { where: eb.and(where) }),
    filter,
  };
}

/** A condition of a filter; `on` is the order whose index it is a range of. */
interface Condition {
  is: Expression<SqlBool>;
  on?: ProductOrderField;
}

/** The conditions of a filter but `search` (search/product.search.ts). */
function conditionsOf(filter: CheckedFilter): Condition[] {
  const { nameContains, barcodeIn, priceMin, priceMax, createdSince, updatedSince } = filter;
  const { PRICE, CREATED_AT, UPDATED_AT } = ProductOrderField;
  const conditions: Record<
    Exclude<keyof CheckedFilter, 'search'>,
    Condition | false | null | undefined
  > = {
    nameContains: nameContains != null && { is: matches(nameContains) },
    barcodeIn: barcodeIn && { is: eb('barcode', '=', eb.fn.any(eb.val(barcodeIn))) },
    priceMin: priceMin != null && { is: eb('price', '>=', priceMin), on: PRICE },
    priceMax: priceMax != null && { is: eb('price', '<=', priceMax), on: PRICE },
    createdSince: createdSince && { is: eb('created_at', '>=', createdSince), on: CREATED_AT },
    updatedSince: updatedSince && { is: eb('updated_at', '>=', updatedSince), on: UPDATED_AT },
  };
  return Object.values(conditions).filter((condition) => condition != null && condition !== false);
}

// The function behind LIKE uses no index. For a text without three letters, the index has to be read
// as a whole, which takes several times as long as the names.
function matches(text: string): Expression<SqlBool> {
  // Escapes after folding, because some letters fold to special characters of LIKE.
  const pattern = sql<string>`'%' || regexp_replace(search_fold(${text}), '([\\\\%_])', '\\\\\\1', 'g') || '%'`;
  return (text.match(/[\p{L}\p{N}]/gu)?.length ?? 0) < 3
    ? eb.fn('textlike', ['name_key', pattern])
    : eb('name_key', 'like', pattern);
}
