import { z } from 'zod';

/** Another server, which reads DATABASE_URL and PORT. */
export interface Peer {
  name: string;
  /** Its package on npm. Its program beside this file has the same name. None: our own packages. */
  package?: string;
  /**
   * Its query for a page of ten products, at `/graphql`; the variable `after` is a cursor, or null for
   * the first page. None: it serves a product by REST.
   */
  query?: string;
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
  },
  {
    name: 'GraphQL Yoga',
    package: 'graphql-yoga',
    query: queryOf('String', 'products'),
  },
  {
    name: 'PostGraphile',
    package: 'postgraphile',
    query: queryOf('Cursor', 'products: allProducts'),
  },
  {
    name: 'Apollo Server, type-graphql and MikroORM on Express',
    query: queryOf('String', 'products'),
  },
  { name: 'Fastify with pg', package: 'fastify' },
];

function queryOf(cursor: string, field: string): string {
  return `query Page($after: ${cursor}) {
  ${field}(first: 10, after: $after) { edges { cursor node { pk name barcode price } } pageInfo { hasNextPage endCursor } }
}`;
}

/** Parses a response to the query. Throws unless it is a page of products. */
export function pageOf(body: unknown): { endCursor: string | null; count: number } {
  const { edges, pageInfo } = answer.parse(body).data.products;
  return { endCursor: pageInfo.endCursor, count: edges.length };
}
