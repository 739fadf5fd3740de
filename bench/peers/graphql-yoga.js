// GraphQL Yoga on node:http, with its cache of parsed and validated queries.
import { createServer } from 'node:http';
import { createSchema, createYoga } from 'graphql-yoga';
import { resolvers, schema } from './products.js';

const yoga = createYoga({
  schema: createSchema({ typeDefs: schema, resolvers }),
  logging: false,
  graphiql: false,
  landingPage: false,
});
createServer(yoga).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'));
