import type { CompiledRoot, RowFields } from '../../api/compiled-fields.ts';
import { FIELDS, kindOf } from './product.columns.ts';
import type { ProductOrder } from './product.inputs.ts';
import { catalogue, LISTED, listed, PRODUCT_ROW_COUNTS } from './product-lists.ts';
import * as products from './product.service.ts';

const row: RowFields = {
  type: 'Product',
  key: 'pk',
  fields: {
    pk: { property: 'pk', form: 'id' },
    ...Object.fromEntries(
      FIELDS.map((field) => [field, { property: field, form: kindOf(field).form }]),
    ),
    createdAt: { property: 'createdAt', form: 'time' },
    updatedAt: { property: 'updatedAt', form: 'time' },
  },
};

/** Frequent reads of the catalogue: one product, and unfiltered pages. */
export const productCompiledFields: Readonly<Record<string, CompiledRoot>> = {
  product: {
    kind: 'one',
    row,
    rowCounts: PRODUCT_ROW_COUNTS,
    read: (ctx, { pk }, properties) => products.read(ctx, String(pk), listOf(properties)),
  },
  products: {
    kind: 'page',
    row,
    rowCounts: PRODUCT_ROW_COUNTS,
    read: (ctx, { filter, orderBy, ...args }, properties) =>
      filter == null
        ? products.page(
            ctx,
            args,
            undefined,
            orderBy as ProductOrder | null | undefined,
            listOf(properties),
          )
        : undefined,
  },
};

// Two choices of columns, so that clients cannot cause many prepared statements.
function listOf(properties: ReadonlySet<string>): typeof catalogue {
  for (const property of properties) if (!LISTED.includes(property)) return catalogue;
  return listed;
}
