import { badInput } from '../kit/errors.ts';
import type { OrderColumn } from '../kit/cursor.ts';
import type { Listing } from '../kit/keyset.ts';
import { join, sql, type Sql } from '../kit/sql.ts';
import { isStorable } from '../kit/text.ts';
import { Product } from './product.entity.ts';
import type { ProductFilter, ProductOrder } from './product.inputs.ts';
import { OrderDirection, ProductOrderField } from './product.inputs.ts';

const MAX_BARCODES = 100;
const MAX_TEXT = 255;

const ORDERS: Record<ProductOrderField, OrderColumn> = {
  [ProductOrderField.PK]: { property: 'pk', kind: 'pk' },
  [ProductOrderField.NAME]: { property: 'nameKey', kind: 'text' },
  [ProductOrderField.PRICE]: { property: 'price', kind: 'decimal' },
  [ProductOrderField.CREATED_AT]: { property: 'createdAt', kind: 'time' },
  [ProductOrderField.UPDATED_AT]: { property: 'updatedAt', kind: 'time' },
};

/** Where the database counts the products (kit/tally.ts). */
export const PRODUCT_TALLY = 'product_tally';

/** The whole catalogue by pk. */
export const catalogue: Listing<Product> = {
  name: 'products',
  entity: Product,
  order: [{ property: 'pk', kind: 'pk' }],
  tally: PRODUCT_TALLY,
};

/** The catalogue as the filter narrows and the order sorts it; by pk where no order is given. */
export function listingOf(filter: ProductFilter | undefined, orderBy: ProductOrder | null | undefined): Listing<Product> {
  const order = ORDERS[orderBy?.field ?? ProductOrderField.PK];
  const found = conditions(filter ?? {});
  return {
    ...catalogue,
    order: order.property === 'pk' ? [order] : [order, { property: 'pk', kind: 'pk' }],
    descending: orderBy?.direction === OrderDirection.DESC,
    ...(found.length > 0 && { where: join(found, ' and ') }),
    filter,
  };
}

function conditions({ search, nameContains, barcodeIn, priceMin, priceMax }: ProductFilter): Sql[] {
  const found: Sql[] = [];
  if (search != null) found.push(...wordsOf(search).map((word) => sql`(name_key like lower(${`%${like(word)}%`}) or barcode = ${word})`));
  if (nameContains != null) found.push(sql`name_key like lower(${`%${like(storable('filter.nameContains', nameContains))}%`})`);
  if (barcodeIn != null) {
    if (barcodeIn.length > MAX_BARCODES) throw badInput('filter.barcodeIn', `names at most ${MAX_BARCODES} barcodes`);
    found.push(sql`barcode = any(${barcodeIn}::text[])`);
  }
  if (priceMin != null) found.push(sql`price >= ${priceMin}::numeric`);
  if (priceMax != null) found.push(sql`price <= ${priceMax}::numeric`);
  return found;
}

// Every word has to be there: in the name, or as the whole barcode.
function wordsOf(search: string): string[] {
  return storable('filter.search', search)
    .split(/\s+/)
    .filter((word) => word !== '');
}

function storable(field: string, text: string): string {
  if (text.length > MAX_TEXT) throw badInput(field, `has more than ${MAX_TEXT} characters`);
  if (!isStorable(text)) throw badInput(field, 'has a NUL or is not well-formed Unicode');
  return text;
}

function like(text: string): string {
  return text.replace(/[\\%_]/g, (sign) => `\\${sign}`);
}
