import { z } from 'zod';
import { idempotencyKey } from '../idempotency/idempotency.service.ts';
import { envelope, envelopeOf, linkHeader } from '../kit/page-envelope.ts';
import { route, type Routes } from '../kit/route.ts';
import { pageQueryOf } from '../kit/slice.ts';
import { priceNumber } from './price.ts';
import type { Product } from './product.entity.ts';
import { catalogueAsJson } from './product.export.ts';
import { PRODUCT_TALLY } from './product.listing.ts';
import { newProduct } from './product.rules.ts';
import * as products from './product.service.ts';

const LIST = '/api/v1/shop/products';
const PAGED_LIST = '/api/v2/shop/products';
/** Products on a page of the second version (interface, section 8). */
const PAGE_SIZE = 10;

/** What REST clients see of a product (interface, section 2). */
const SHOWN = ['pk', 'name', 'barcode', 'price'] as const;

const productBody = z.object({ pk: z.int(), name: z.string(), barcode: z.string(), price: z.number() });

/** Interface, section 4.3. */
export const productRoutes: Routes = ({ basePath, defaultPageSize }) => [
  route({
    method: 'GET',
    path: LIST,
    summary: 'All products.',
    access: 'public',
    success: { status: 200, body: 'stream' },
    tally: PRODUCT_TALLY,
    successor: PAGED_LIST,
    twin: 'query products',
    handle: catalogueAsJson,
  }),
  route({
    method: 'GET',
    path: '/api/v1/shop/product/{pk}',
    summary: 'The product with this primary key.',
    access: 'public',
    input: { path: z.object({ pk: z.string() }) },
    success: { status: 200, body: productBody },
    tally: PRODUCT_TALLY,
    twin: 'query product',
    handle: async (ctx, { path }) => body(await products.byPk(ctx, path.pk)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/shop/product/',
    summary: 'Adds a product.',
    access: 'products:write',
    input: { json: newProduct, headers: z.object({ 'idempotency-key': idempotencyKey }) },
    reads: ['Idempotency-Key'],
    success: { status: 201, body: productBody, headers: (_ctx, { pk }) => ({ Location: `${basePath}/api/v1/shop/product/${pk}` }) },
    twin: 'mutation createProduct',
    handle: async (ctx, { json, headers }) => body(await products.create(ctx, json, headers['idempotency-key'])),
  }),
  route({
    method: 'GET',
    path: PAGED_LIST,
    summary: 'Products in pages: by number, or by limit and offset.',
    access: 'public',
    input: { query: pageQueryOf({ pageSize: PAGE_SIZE, defaultLimit: defaultPageSize, byPage: true }) },
    success: { status: 200, body: envelopeOf(productBody), headers: (_ctx, page) => linkHeader(page) },
    tally: PRODUCT_TALLY,
    twin: 'query products',
    handle: async (ctx, { query }) => {
      const { items, count } = await products.slice(ctx, query, SHOWN);
      return envelope(ctx, PAGED_LIST, query, { items: items.map(body), count });
    },
  }),
];

function body({ pk, name, barcode, price }: Pick<Product, (typeof SHOWN)[number]>) {
  return { pk, name, barcode, price: priceNumber(price) };
}
