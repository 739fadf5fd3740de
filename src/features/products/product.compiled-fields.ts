import type { CompiledRoot, RowFields } from '../../api/compiled-fields.ts';
import { FIELDS, kindOf } from './product.columns.ts';
import type { ProductOrder } from './product.inputs.ts';
import { PRODUCT_ROW_COUNTS } from './product-lists.ts';
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
    read: (ctx, { pk }, properties) => products.findRow(ctx, String(pk), properties),
  },
  products: {
    kind: 'page',
    row,
    rowCounts: PRODUCT_ROW_COUNTS,
    read: (ctx, { filter, orderBy, ...args }, properties) =>
      filter == null
        ? products.rowPage(ctx, args, properties, orderBy as ProductOrder | null | undefined)
        : undefined,
  },
};
