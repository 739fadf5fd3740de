import { z } from 'zod';

/**
 * Another GraphQL server with a page of ten products. It reads DATABASE_URL and PORT, and serves
 * `/graphql`.
 */
export interface Peer {
  name: string;
  /** Its package on npm. Its program beside this file has the same name. */
  package: string;
  /** The query of the page; its variable `after` is a cursor, or null for the first page. */
  query: string;
  /** Parses a response. Throws unless it is a page of products. */
  page: (body: unknown) => { endCursor: string | null; count: number };
}

const answer = z.object({
  data: z.object({
    products: z.object({
      edges: z.array(
        z.object({
          cursor: z.string(),
          // PostGraphile returns a key as an integer and a decimal as a string.
          node: z.object({
            pk: z.union([z.string(), z.int()]),
            name: z.string(),
            barcode: z.string(),
            price: z.union([z.number(), z.string()]),
          }),
        }),
      ),
      pageInfo: z.object({ hasNextPage: z.boolean(), endCursor: z.string().nullable() }),
    }),
  }),
  errors: z.undefined().optional(),
});

export const peers: readonly Peer[] = [
  {
    name: 'mercurius',
    package: 'mercurius',
    query: queryOf('String', 'products'),
    page,
  },
  {
    name: 'GraphQL Yoga',
    package: 'graphql-yoga',
    query: queryOf('String', 'products'),
    page,
  },
  {
    name: 'PostGraphile',
    package: 'postgraphile',
    query: queryOf('Cursor', 'products: allProducts'),
    page,
  },
];

function queryOf(cursor: string, field: string): string {
  return `query Page($after: ${cursor}) {
  ${field}(first: 10, after: $after) { edges { cursor node { pk name barcode price } } pageInfo { hasNextPage endCursor } }
}`;
}

function page(body: unknown): { endCursor: string | null; count: number } {
  const { edges, pageInfo } = answer.parse(body).data.products;
  return { endCursor: pageInfo.endCursor, count: edges.length };
}
