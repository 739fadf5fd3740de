// The schema and its resolvers for mercurius and GraphQL Yoga, with one prepared statement.
import { Pool } from 'pg';

const SIZE = 10;
const PAGE = {
  name: 'page',
  text: 'select pk, name, barcode, price from product where pk > $1 order by pk limit 11',
};

export const schema = `
  type Query { products(first: Int, after: String): ProductConnection! }
  type ProductConnection { edges: [ProductEdge!]!, pageInfo: PageInfo! }
  type ProductEdge { cursor: String!, node: Product! }
  type Product { pk: ID!, name: String!, barcode: String!, price: Float! }
  type PageInfo { hasNextPage: Boolean!, endCursor: String }
`;

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });

export const resolvers = {
  Query: {
    async products(_, { after }) {
      const { rows } = await pool.query({ ...PAGE, values: [after ? pkAt(after) : 0] });
      const edges = rows
        .slice(0, SIZE)
        .map((row) => ({ cursor: cursorAt(row.pk), node: { ...row, price: Number(row.price) } }));
      return {
        edges,
        pageInfo: { hasNextPage: rows.length > SIZE, endCursor: edges.at(-1)?.cursor ?? null },
      };
    },
  },
};

function cursorAt(pk) {
  return Buffer.from(JSON.stringify(['bench', pk])).toString('base64url');
}

function pkAt(cursor) {
  return JSON.parse(Buffer.from(cursor, 'base64url').toString())[1];
}
