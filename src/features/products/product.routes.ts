import { z } from 'zod';
import { idempotencyKey } from '../idempotency/idempotency.service.ts';
import { badInput } from '../../core/errors.ts';
import {
  envelope,
  envelopeCorrespondences,
  envelopeOf,
  INVALID_PAGE,
  linkHeader,
  pageQueryOf,
} from '../../api/offset-page.ts';
import { MAX_PK } from '../../core/pk.ts';
import { route, type Routes } from '../../api/route.ts';

import { MAX_PRICE } from './price.ts';
import type { Product } from './product.entity.ts';
import { streamCatalogue } from './json-stream.ts';
import { PRODUCT_ROW_COUNTS } from './product-lists.ts';
import { barcodeTaken, newProduct, unknownProduct } from './product.rules.ts';
import * as products from './product.service.ts';

const LIST = '/api/v1/shop/products';
const PAGED_LIST = '/api/v2/shop/products';
/** Number of products on a page of v2 (interface, section 8). */
const PAGE_SIZE = 10;

/** Fields of a product in the REST API (interface, section 2). */
const REST_FIELDS = ['pk', 'name', 'barcode', 'price'] as const;

/** JSON Schema of the primary key. */
const PK = {
  type: 'integer',
  format: 'int64',
  minimum: 1,
  maximum: MAX_PK,
  examples: [1],
} as const;

const productBody = z
  .object({
    pk: z.int().meta({ ...PK, description: 'The primary key, as in the path of the product.' }),
    name: z.string().meta({
      description: 'The name.',
      minLength: 1,
      maxLength: 255,
      examples: ['Classic Oak Table'],
    }),
    barcode: z.string().meta({
      description: 'The barcode (EAN-13), with its leading zeros.',
      pattern: '^[0-9]{13}$',
      minLength: 13,
      maxLength: 13,
      examples: ['4006380000001'],
    }),
    price: z.number().meta({
      description: 'The price, exact, with at most two fraction digits.',
      minimum: 0,
      maximum: MAX_PRICE,
      examples: [1.99],
    }),
  })
  .meta({ id: 'Product', description: 'A product of the catalogue.' });

// Clients of the interface know no other fields.
const restProduct = newProduct.pick({ name: true, barcode: true, price: true });

// Operations of the GraphQL equivalents. The next page starts after `pageInfo.endCursor`.
const FIELDS = REST_FIELDS.join(' ');
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
    summary: 'List all products',
    description:
      'Returns the whole catalogue as one JSON array, ordered by primary key. The array is streamed from the database; ' +
      `a product that changes meanwhile may appear in its old or its new state. \`GET ${PAGED_LIST}\` returns the same products in pages.`,
    access: 'public',
    success: { status: 200, body: z.array(productBody), stream: true },
    successor: PAGED_LIST,
    graphqlEquivalent: {
      operation: PAGES,
      variables: { first: 100 },
      correspondences: [
        { rest: '', graphql: 'products.nodes', hasMore: 'products.pageInfo.hasNextPage' },
      ],
    },
    handle: streamCatalogue,
  }),
  route({
    method: 'GET',
    path: '/api/v1/shop/product/{pk}',
    summary: 'Get a product',
    description:
      'Returns the product with this primary key. An unknown primary key and text that is not an integer return 404. Without credentials, ' +
      'a request with `If-None-Match` returns 304 until the product changes.',
    access: 'public',
    input: { path: z.object({ pk: z.string().meta({ ...PK, description: 'The primary key.' }) }) },
    errors: [unknownProduct()],
    success: { status: 200, body: productBody },
    rowCounts: PRODUCT_ROW_COUNTS,
    graphqlEquivalent: {
      operation: `query ($pk: ID!) { product(pk: $pk) { ${FIELDS} } }`,
      variables: { pk: '1' },
      correspondences: [{ rest: '', graphql: 'product' }],
    },
    handle: async (ctx, { path }) => productJson(await products.byPk(ctx, path.pk)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/shop/product/',
    summary: 'Create a product',
    description:
      'Adds a product to the catalogue and returns it; `Location` has its path. The credentials need the scope `products:write`. With an ' +
      '`Idempotency-Key`, a repeated request within 24 hours returns the first response again and creates nothing; a different body returns 422.',
    access: 'products:write',
    errors: [barcodeTaken(), badInput('name', 'Field required', 'missing')],
    input: { json: restProduct, headers: z.object({ 'idempotency-key': idempotencyKey }) },
    success: {
      status: 201,
      body: productBody,
      headers: (_ctx, { pk }) => ({ Location: `${basePath}/api/v1/shop/product/${pk}` }),
    },
    graphqlEquivalent: {
      operation: `mutation ($input: ProductInput!) { createProduct(input: $input) { ${FIELDS} } }`,
      variables: { input: { name: 'Brass Kettle', barcode: '4006381333931', price: 24.5 } },
      // Both create a product: a primary key and a barcode exist once.
      correspondences: [
        { rest: 'pk', graphql: 'createProduct.pk', as: 'presence' },
        { rest: 'barcode', graphql: 'createProduct.barcode', as: 'new' },
        { rest: 'name', graphql: 'createProduct.name' },
        { rest: 'price', graphql: 'createProduct.price' },
      ],
    },
    handle: async (ctx, { json, headers }) =>
      productJson(await products.create(ctx, json, headers['idempotency-key'])),
  }),
  route({
    method: 'GET',
    path: PAGED_LIST,
    summary: 'List products in pages',
    description:
      `Returns products ordered by primary key: by \`page\`, ${PAGE_SIZE} per page, or by \`limit\` and \`offset\`, but not by both. Without ` +
      'parameters, returns page 1. A page past the end has no items and the total `count`.',
    access: 'public',
    errors: [INVALID_PAGE],
    input: {
      query: pageQueryOf({ pageSize: PAGE_SIZE, defaultLimit: defaultPageSize, byPage: true }),
    },
    success: {
      status: 200,
      body: envelopeOf(productBody),
      headers: (_ctx, page) => linkHeader(page),
    },
    rowCounts: PRODUCT_ROW_COUNTS,
    graphqlEquivalent: {
      operation: PAGES,
      variables: { first: PAGE_SIZE },
      correspondences: envelopeCorrespondences('products'),
    },
    handle: async (ctx, { query }) => {
      const { items, count } = await products.offsetPage(ctx, query);
      return envelope(ctx, PAGED_LIST, query, { items: items.map(productJson), count });
    },
  }),
];

// Returns a product as in the REST API.
function productJson({ pk, name, barcode, price }: Pick<Product, (typeof REST_FIELDS)[number]>) {
  // At most 12 digits, which a double prints unchanged.
  return { pk, name, barcode, price: Number(price) };
}
