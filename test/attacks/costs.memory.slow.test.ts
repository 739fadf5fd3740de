import { once } from 'node:events';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { register } from 'prom-client';
import { afterEach, beforeEach, expect, test } from '../support/jest.ts';
import { readConfig } from '../../src/core/config.ts';
import { readGraphqlText, REQUEST_BYTES } from '../../src/http/body.ts';
import { Exchange } from '../../src/http/exchange.ts';
import { markClosing } from '../../src/http/closing-connection.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { batchesOf } from '../../src/features/products/json-stream.ts';
import { MAX_BYTES } from '../../src/http/memory-limit.ts';
import { openConnections } from '../support/open-connections.ts';
import { until } from '../support/until.ts';

// What many connections together use of the server's memory.

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const CLIENTS = 40;
/** More than twice what the kernel takes of a response that is not read. */
const LONG = Buffer.alloc((8 * MAX_BYTES) / CLIENTS);
const WAITING = `GET /${'x'.repeat(15_000)} HTTP/1.1\r\nHost: shop\r\n\r\n`;

let server: Server;
let sockets: Socket[];
let handle: (req: IncomingMessage, res: ServerResponse) => void;

beforeEach(async () => {
  sockets = [];
  server = createHttpServer(
    readConfig({ TRUST_PROXY: '127.0.0.1' }, () => ''),
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
  await openAll(from('198.51.100.7'));
  await until(async () => (await openConnections(server)) < CLIENTS / 2, 'the end of connections');
  expect(await openConnections(server)).toBeGreaterThan(0);
});

test('P23 the connections of the network that uses most are closed, and no others', async () => {
  const others: Socket[] = [];
  handle = ({ headers, socket }, res) => {
    const isOther = headers['x-forwarded-for'] !== '198.51.100.7';
    if (isOther) others.push(socket);
    res.end(isOther ? LONG : LONG.subarray(0, LONG.length / 2));
  };
  await openAll(from('203.0.113.1'), 1);
  await openAll(from('198.51.100.7'));
  await until(async () => (await openConnections(server)) < CLIENTS / 2, 'the end of connections');
  expect(others.map(({ destroyed }) => destroyed)).toEqual([false]);
});

test.each([
  ['last less than a second', 700, 0],
  ['are closed at every other check', 1_100, 1_000],
])('P23 a client whose connections %s costs others none', async (_when, openMs, closedMs) => {
  const others: Socket[] = [];
  handle = ({ headers, socket }, res) => {
    if (headers['x-forwarded-for'] === '203.0.113.1') others.push(socket);
    res.end(LONG);
  };
  await openAll(from('203.0.113.1'), 1);
  const before = await closedForMemory();
  const end = performance.now() + 5_000;
  while (performance.now() < end) {
    await openAll(from('198.51.100.7'), CLIENTS / 2);
    await setTimeout(openMs);
    for (const socket of sockets.splice(1)) socket.destroy();
    await setTimeout(closedMs);
  }
  expect(others.map(({ destroyed }) => destroyed)).toEqual([false]);
  expect(await closedForMemory()).toBeGreaterThan(before);
});

test('P23 of a long X-Forwarded-For, only its end is parsed', async () => {
  const forwarded: unknown[] = [];
  handle = ({ headers }, res) => {
    forwarded.push(headers['x-forwarded-for']);
    res.end();
  };
  const addresses = Array.from({ length: 1_000 }, (_, at) => `10.0.1.${at % 250}`);
  await openAll(from(addresses.join(', ')), 1);
  await openAll(from('1'.repeat(10_000)), 1);
  await until(() => forwarded.length === 2, 'the requests');
  expect(forwarded).toContain('');
  const [kept = ''] = forwarded.filter((value) => value !== '') as string[];
  expect(kept.length).toBeLessThanOrEqual(500);
  expect(kept.trimStart()).toBe(addresses.slice(-kept.split(',').length).join(', '));
  expect(kept.split(',').length).toBeGreaterThan(30);
});

test('P23 requests of more than 64 KB that wait for a response close their connection', async () => {
  const received: Socket[] = [];
  handle = ({ socket }, res) => {
    received.push(socket);
    res.write(' ');
  };
  await openAll(from('198.51.100.7') + WAITING.repeat(5), 1);
  await openAll(from('198.51.100.7') + WAITING.repeat(6), 1);
  await until(() => received.some(({ destroyed }) => destroyed), 'the end of a connection');
  // Idle, the first connection would be closed before the second.
  expect(received.map(({ destroyed }) => destroyed)).toEqual([false, true]);
});

test('P23 the requests that wait for unread responses count', async () => {
  handle = (_req, res) => res.write(' ');
  const count = Math.ceil((2 * MAX_BYTES) / (60 * REQUEST_BYTES));
  await openAll(from('198.51.100.7').repeat(61), count);
  await until(async () => (await openConnections(server)) <= count / 2, 'the end of connections');
});

test('P23 the unread body of the request whose response is not read counts', async () => {
  handle = (_req, res) => res.write(' ');
  const body = `${`20\r\n${'x'.repeat(32)}\r\n`.repeat(1_700)}0\r\n\r\n`;
  const request = from('198.51.100.7').replace(/\r\n$/, 'Transfer-Encoding: chunked\r\n\r\n');
  const count = Math.ceil((2 * MAX_BYTES) / (1_000 * 500));
  const before = await closedForMemory();
  await openAll(request + body, count);
  await until(async () => (await openConnections(server)) <= count / 2, 'the end of connections');
  // Not closed as idle.
  expect(await closedForMemory()).toBeGreaterThan(before);
});

test('P23 the requests that are dropped on a closing connection count', async () => {
  handle = (req, res) => {
    markClosing(req.socket);
    res.write(' ');
  };
  const count = Math.ceil((2 * MAX_BYTES) / (60 * WAITING.length));
  await openAll(from('198.51.100.7') + WAITING.repeat(60), count);
  await until(async () => (await openConnections(server)) <= count / 2, 'the end of connections');
});

test('P23 whole lists are read in smaller batches while many are open', async () => {
  const sizes: number[] = [];
  const open = () =>
    batchesOf(async (after, size) => {
      sizes.push(size);
      return { text: '', count: size, last: String(Number(after) + size) };
    });
  const lists = Array.from({ length: 16 }, open);
  for (const list of lists) await list.next();
  sizes.length = 0;
  await lists[0]?.next();
  expect(sizes).toEqual([2_500]);
  for (const list of lists.slice(1)) await list.return(undefined);
  await lists[0]?.next();
  expect(sizes).toEqual([2_500, 5_000]);
  await lists[0]?.return(undefined);
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

/** Returns a request of a client of this address. */
function from(address: string): string {
  return `GET / HTTP/1.1\r\nHost: shop\r\nX-Forwarded-For: ${address}\r\n\r\n`;
}

async function closedForMemory(): Promise<number> {
  const metric = await register.getSingleMetric('shopfront_http_rejected_total')?.get();
  return metric?.values.find(({ labels }) => labels['reason'] === 'memory')?.value ?? 0;
}

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
