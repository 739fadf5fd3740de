import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test } from '../support/jest.ts';
import { readConfig } from '../../src/core/config.ts';
import { readGraphqlText } from '../../src/http/body.ts';
import { Exchange } from '../../src/http/exchange.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { MAX_BYTES } from '../../src/http/memory-limit.ts';
import { until } from '../support/until.ts';

// What many connections together use of the server's memory.

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const CLIENTS = 40;
const LONG = Buffer.alloc((4 * MAX_BYTES) / CLIENTS);
const GET = 'GET / HTTP/1.1\r\nHost: shop\r\n\r\n';

let server: Server;
let sockets: Socket[];
let handle: (req: IncomingMessage, res: ServerResponse) => void;

beforeEach(async () => {
  sockets = [];
  server = createHttpServer(
    readConfig({}, () => ''),
    (req, res) => handle(req, res),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  await new Promise((done) => void server.close(done));
});

test('P23 the unread responses of all connections together are limited', async () => {
  handle = (_req, res) => res.end(LONG);
  await openAll(GET);
  await until(async () => (await connections()) < CLIENTS / 2, 'the end of connections');
  expect(await connections()).toBeGreaterThan(0);
});

test('P23 a client that reads gets its response while others are disconnected', async () => {
  handle = (_req, res) => res.end(LONG);
  const { port } = server.address() as AddressInfo;
  const reader = { isStopped: false };
  const received: number[] = [];
  const reading = (async () => {
    while (!reader.isStopped) {
      const response = await fetch(`http://127.0.0.1:${port}`);
      received.push((await response.arrayBuffer()).byteLength);
    }
  })();
  await openAll(GET);
  await until(async () => (await connections()) < CLIENTS / 2, 'the end of connections');
  reader.isStopped = true;
  await reading;
  expect(new Set(received)).toEqual(new Set([LONG.length]));
});

test('P23 the requests that wait for unread responses count', async () => {
  handle = (_req, res) => res.write(' ');
  const waiting = `GET /${'x'.repeat(15_000)} HTTP/1.1\r\nHost: shop\r\n\r\n`;
  const count = Math.ceil((2 * MAX_BYTES) / (30 * waiting.length));
  await openAll(GET + waiting.repeat(30), count);
  await until(async () => (await connections()) <= count / 2, 'the end of connections');
});

test('P21 the chunks of bodies that are not complete take little more memory than their bytes', async () => {
  const size = 33;
  const perBody = 3_000;
  let received = 0;
  handle = (req, res) => {
    const exchange = new Exchange(
      req,
      res,
      {},
      {},
      () => false,
      () => undefined,
    );
    readGraphqlText(exchange).catch(() => undefined);
    req.on('data', ({ length }: Buffer) => (received += length));
  };
  collect();
  const before = process.memoryUsage().heapUsed;
  const chunk = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`;
  await openAll(
    'POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n' +
      chunk.repeat(perBody),
    CLIENTS,
  );
  await until(() => received === CLIENTS * perBody * size, 'the bodies');
  collect();
  // Kept apart, each chunk would take about 250 bytes: 30 MB in all.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000);
});

/** Opens connections that send this text and read nothing. */
async function openAll(text: string, count = CLIENTS): Promise<void> {
  const { port } = server.address() as AddressInfo;
  for (let opened = 0; opened < count; opened++) {
    const socket = connect(port, '127.0.0.1')
      .on('error', () => undefined)
      .pause();
    sockets.push(socket);
    await once(socket, 'connect');
    socket.write(text);
  }
}

function connections(): Promise<number> {
  return new Promise(
    (done, fail) =>
      void server.getConnections((error, count) => (error ? fail(error) : done(count))),
  );
}
