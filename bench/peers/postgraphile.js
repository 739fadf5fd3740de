// PostGraphile 5 with its amber preset, which derives its schema from the tables and a statement
// from each query.
import { createServer } from 'node:http';
import { postgraphile } from 'postgraphile';
import { makePgService } from 'postgraphile/adaptors/pg';
import { grafserv } from 'postgraphile/grafserv/node';
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber';

const instance = postgraphile({
  extends: [PostGraphileAmberPreset],
  pgServices: [
    makePgService({
      connectionString: process.env.DATABASE_URL,
      schemas: ['public'],
      poolConfig: { max: 10 },
      pubsub: false,
    }),
  ],
  grafast: { explain: false },
  // The benchmark checks by GET whether a server is ready.
  grafserv: { graphiql: false, websockets: false, graphqlOverGET: true },
});

const server = createServer();
await instance.createServ(grafserv).addTo(server);
await instance.getSchema();
server.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('ready'));
