import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from '../support/jest.ts';
import { readConfig } from '../../src/core/config.ts';
import { Server } from '../../src/server.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { workerDatabase } from '../support/shop.ts';

const servers = new Set<Server>();

afterEach(async () => {
  await Promise.all([...servers].map(stop));
});

test('F-10 a server that stops answers requests on open connections, and closes them', async () => {
  const server = await start();
  const socket = connect(server.port, '127.0.0.1');
  const received = text(socket);
  const get = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`);
  get('/livez');
  await new Promise((done) => socket.once('readable', done));
  const stopped = stop(server);
  get('/readyz');
  expect(await received).toMatch(/ 200 OK.* 503 Service Unavailable.*Connection: close/s);
  await stopped;
});

async function start(): Promise<Server> {
  const config = readConfig(
    {
      ...workerDatabase(),
      SIGNING_SECRET: TEST_SECRET,
      PUBLIC_URL: 'https://shop.example',
      PORT: '0',
      HOST: '127.0.0.1',
    },
    () => undefined,
  );
  const server = new Server(config, openLog({ logLevel: 'silent' }), { write: () => undefined });
  servers.add(server);
  await server.start();
  return server;
}

async function stop(server: Server): Promise<void> {
  if (servers.delete(server)) await server.stop();
}
