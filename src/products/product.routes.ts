import { z } from 'zod';
import { idempotencyKey } from '../idempotency/idempotency.service.ts';
import { envelope, envelopeOf, LINK_HEADER, linkHeader } from '../kit/page-envelope.ts';
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

const productBody = z
  .object({
    pk: z.int().meta({ description: 'The primary key, as in the path of the product.', examples: [1] }),
    name: z.string().meta({ description: 'The name.', examples: ['Classic Oak Table'] }),
    barcode: z
      .string()
      .meta({ description: 'The barcode (EAN-13), with its leading zeros.', pattern: '^[0-9]{13}$', examples: ['4006380000001'] }),
    price: z.number().meta({ description: 'The price, exact, with at most two fraction digits.', minimum: 0, examples: [1.99] }),
  })
  .meta({ id: 'Product', description: 'A product of the catalogue.' });

// What the twins ask for. A page by cursor goes on after `pageInfo.endCursor`.
const FIELDS = SHOWN.join(' ');
const PAGES = `query ($first: Int, $after: String) {
  products(first: $first, after: $after) {
    nodes { ${FIELDS} }
    totalCount
    pageInfo { hasNextPage endCursor }
  }
}`;

/** Interface, section 4.3. */
export const productRoutes: Routes = ({ basePath, defaultPageSize }) => [
  route({
    method: 'GET',
    path: LIST,
    summary: 'All products.',
    access: 'public',
    description: 'The whole catalogue as one array, by primary key, sent while it is read: memory does not grow with it.',
    success: { status: 200, body: z.array(productBody), stream: true },
    tally: PRODUCT_TALLY,
    successor: PAGED_LIST,
    twin: { operation: PAGES, variables: { first: 100 } },
    handle: catalogueAsJson,
  }),
  route({
    method: 'GET',
    path: '/api/v1/shop/product/{pk}',
    summary: 'The product with this primary key.',
    access: 'public',
    input: { path: z.object({ pk: z.string().meta({ description: 'The primary key. What no product has is 404.', examples: ['1'] }) }) },
    success: { status: 200, body: productBody },
    tally: PRODUCT_TALLY,
    twin: { operation: `query ($pk: ID!) { product(pk: $pk) { ${FIELDS} } }`, variables: { pk: '1' } },
    handle: async (ctx, { path }) => productJson(await products.byPk(ctx, path.pk)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/shop/product/',
    summary: 'Adds a product.',
    access: 'products:write',
    input: { json: newProduct, headers: z.object({ 'idempotency-key': idempotencyKey }) },
    reads: ['Idempotency-Key'],
    success: {
      status: 201,
      body: productBody,
      headers: (_ctx, { pk }) => ({ Location: `${basePath}/api/v1/shop/product/${pk}` }),
      documentedHeaders: { Location: 'The path of the new product.' },
    },
    twin: {
      operation: `mutation ($input: ProductInput!) { createProduct(input: $input) { ${FIELDS} } }`,
      variables: { input: { name: 'Brass Kettle', barcode: '4006381333931', price: 24.5 } },
    },
    handle: async (ctx, { json, headers }) => productJson(await products.create(ctx, json, headers['idempotency-key'])),
  }),
  route({
    method: 'GET',
    path: PAGED_LIST,
    summary: 'Products in pages: by number, or by limit and offset.',
    access: 'public',
    input: { query: pageQueryOf({ pageSize: PAGE_SIZE, defaultLimit: defaultPageSize, byPage: true }) },
    success: { status: 200, body: envelopeOf(productBody), headers: (_ctx, page) => linkHeader(page), documentedHeaders: LINK_HEADER },
    tally: PRODUCT_TALLY,
    twin: { operation: PAGES, variables: { first: PAGE_SIZE } },
    handle: async (ctx, { query }) => {
      const { items, count } = await products.slice(ctx, query, SHOWN);
      return envelope(ctx, PAGED_LIST, query, { items: items.map(productJson), count });
    },
  }),
];

/** A product as the REST door gives it. */
export function productJson({ pk, name, barcode, price }: Pick<Product, (typeof SHOWN)[number]>) {
  return { pk, name, barcode, price: priceNumber(price) };
}
