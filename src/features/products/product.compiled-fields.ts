import type { RootPlan, RowFields } from '../../api/compiled-fields.ts';
import type { ProductOrder } from './product.inputs.ts';
import { PRODUCT_TALLY } from './product-lists.ts';
import * as products from './product.service.ts';

const row: RowFields = {
  type: 'Product',
  key: 'pk',
  fields: {
    pk: { property: 'pk', form: 'id' },
    name: { property: 'name', form: 'text' },
    barcode: { property: 'barcode', form: 'text' },
    price: { property: 'price', form: 'number' },
    createdAt: { property: 'createdAt', form: 'time' },
    updatedAt: { property: 'updatedAt', form: 'time' },
  },
};

/** The reads of the catalogue that are hot: one product, and its pages where nothing is filtered. */
export const productPlans: Readonly<Record<string, RootPlan>> = {
  product: { kind: 'one', row, tally: PRODUCT_TALLY, read: (ctx, { pk }, properties) => products.findRow(ctx, String(pk), properties) },
  products: {
    kind: 'page',
    row,
    tally: PRODUCT_TALLY,
    read: (ctx, { filter, orderBy, ...args }, properties) =>
      filter == null ? products.rowPage(ctx, args, properties, orderBy as ProductOrder | null | undefined) : undefined,
  },
};
