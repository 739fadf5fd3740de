import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from '../support/jest.ts';
import { readConfig } from '../../src/core/config.ts';
import { Server } from '../../src/server.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { useShop, workerDatabase } from '../support/shop.ts';

const shop = useShop();
const servers = new Set<Server>();

afterEach(async () => {
  await Promise.all([...servers].map(stop));
});

test('two servers start, serve and stop in one process', async () => {
  await shop.makeProduct({ name: 'Lamp' });
  const [one, other] = [await start(), await start()];
  expect(one.port).not.toBe(other.port);
  for (const server of [one, other])
    expect(await namesAt(server)).toEqual([200, ['Lamp'], 'keep-alive']);
  await stop(one);
  await expect(namesAt(one)).rejects.toThrow('does not listen');
  await shop.makeProduct({ name: 'Chair' });
  expect(await namesAt(other)).toEqual([200, ['Lamp', 'Chair'], 'keep-alive']);
  expect(await namesAt(await start())).toEqual([200, ['Lamp', 'Chair'], 'keep-alive']);
});

test('F-10 a server that stops answers requests on open connections, and closes them', async () => {
  const server = await start();
  const socket = connect(server.port, '127.0.0.1');
  const received = text(socket);
  const get = (path: string) => socket.write(`GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`);
  get('/livez');
  await new Promise((done) => socket.once('readable', done));
  const stopped = stop(server);
  // The server has stopped listening when this fails.
  await expect(untilRefused(server.port)).resolves.toBeUndefined();
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

async function namesAt({ port }: Server): Promise<unknown[]> {
  const res = await fetch(`http://127.0.0.1:${port}/api/v1/shop/products`);
  const products = (await res.json()) as { name: string }[];
  return [res.status, products.map(({ name }) => name), res.headers.get('Connection')];
}

async function untilRefused(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1');
    const isOpen = await new Promise<boolean>((done) => {
      socket.once('connect', () => done(true)).once('error', () => done(false));
    });
    socket.destroy();
    if (!isOpen) return;
  }
}
