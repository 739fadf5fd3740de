// Fastify with mercurius, which compiles a query at its second use.
import Fastify from 'fastify';
import mercurius from 'mercurius';
import { resolvers, schema } from './products.js';

const app = Fastify();
await app.register(mercurius, { schema, resolvers, jit: 1 });
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
console.log('ready');
