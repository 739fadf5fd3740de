// Fastify with pg: a product by REST, with one prepared statement and a compiled serializer.
import Fastify from 'fastify';
import { Pool } from 'pg';

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
const text = 'select pk, name, barcode, price from product where pk = $1';
const product = {
  type: 'object',
  properties: {
    pk: { type: 'integer' },
    name: { type: 'string' },
    barcode: { type: 'string' },
    price: { type: 'number' },
  },
};

const app = Fastify();
app.get('/api/v1/shop/product/:pk', { schema: { response: { 200: product } } }, async (req) => {
  const { rows } = await pool.query({ name: 'product', text, values: [req.params.pk] });
  return rows[0];
});
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
