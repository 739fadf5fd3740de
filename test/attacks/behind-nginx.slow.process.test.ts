import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { closed, statusesOf, untilClosed, useProxiedShop } from '../support/behind-nginx.ts';
import { memoryAddedBy } from '../support/resident.ts';
import { until } from '../support/until.ts';

// Clients that send or read slowly, or never. The time-outs are shorter than in deploy/nginx.

/**
 * Number of products: a list of 63 MB, which exceeds all socket buffers on its way. Linux lets the one
 * that receives from the instance grow to 32 MB (tcp_rmem).
 */
const PRODUCTS = 60_000;
const shop = useProxiedShop(
  [
    [/client_header_timeout 10s;/g, 'client_header_timeout 2s;'],
    ['client_body_timeout 10s;', 'client_body_timeout 2s;'],
    ['  send_timeout 30s;', '  send_timeout 2s;'],
    ['keepalive_timeout 30s;', 'keepalive_timeout 2s;'],
    ['rate=50r/s', 'rate=5000r/s'],
  ],
  PRODUCTS,
);

const LIST = '/api/v1/shop/products';
/** A page of 100 KB. */
const PAGE = '/api/v2/shop/products?limit=100';
const POST = 'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n';
const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: shop\r\n${headers}\r\n`;
const CLIENTS = 200;

beforeEach(() => shop.expectServed());

describe('H9 slow senders', () => {
  const HEADERS: [string, string, string][] = [
    ['nothing at all', '', ''],
    ['incomplete headers', 'GET /livez HTTP/1.1\r\nHost: shop\r\n', ''],
    ['headers sent byte by byte', 'GET /livez HTTP/1.1\r\nX-A: ', 'a'],
  ];
  const BODIES: [string, string, string][] = [
    ['a missing body', `${POST}Content-Length: 10\r\n\r\n`, ''],
    ['chunks without the last one', `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`, ''],
  ];

  test.each([...HEADERS, ...BODIES])(
    'H9 %s: the connection is closed, and the instance sees nothing of it',
    async (_what, begin, more) => {
      const requests = shop.logged.length;
      const sockets = await many(CLIENTS / 10);
      const ends = sockets.map(untilClosed);
      for (const socket of sockets) {
        socket.write(begin);
        if (more !== '') trickle(socket, more);
      }
      await shop.expectServed();
      expect(shop.upstreamConnections()).toBeLessThanOrEqual(3);
      const answers = await Promise.all(ends);
      expect(new Set(answers.flatMap(statusesOf))).toEqual(new Set());
      await shop.expectServed();
      expect(endpointsSince(requests).filter((endpoint) => /login/.test(endpoint))).toEqual([]);
    },
  );

  test('H9 a body sent byte by byte occupies no place of the instance', async () => {
    const sockets = await many(CLIENTS);
    for (const socket of sockets) {
      socket.write(`${POST}Content-Length: 10000\r\n\r\n{`);
      trickle(socket, ' ');
    }
    // Longer than the time-out without data.
    await setTimeout(3_000);
    await shop.expectServed();
    expect(shop.upstreamConnections()).toBeLessThanOrEqual(3);
    shop.closeSockets();
    await until(() => shop.connections() === 0, 'the end of all connections');
  });

  test('H9 an idle connection is closed without a response', async () => {
    const socket = await shop.open();
    const answer = untilClosed(socket);
    socket.write(get('/livez'));
    expect(statusesOf(await answer)).toEqual([200]);
  });
});

describe('H9 slow readers', () => {
  test('H9 one that stops reading the whole list is disconnected, and its read ends; a slow one gets all of it', async () => {
    const whole = (await (await fetch(shop.server.url + LIST)).json()) as unknown[];
    const stopped = await shop.open();
    const gone = closed(stopped.pause());
    stopped.write(get(LIST));
    let isOver = false;
    const slow = readSlowly(() => isOver);
    await until(() => endsOf(LIST).includes('aborted'), 'the end of the first read');
    isOver = true;
    stopped.resume();
    await gone;
    expect(JSON.parse(await slow)).toHaveLength(whole.length);
  });

  test('P23 many that never read take bounded memory, and the instance is free afterwards', async () => {
    const added = await memoryAddedBy(shop.server, async () => {
      const sockets = await many(CLIENTS);
      // Together 200 MB.
      for (const socket of sockets) socket.pause().write(get(PAGE).repeat(10));
      await shop.expectServed();
      await untilFree();
      for (const socket of sockets) socket.resume();
      await Promise.all(sockets.map(closed));
    });
    expect(added).toBeLessThan(128);
    await shop.expectServed();
  });
});

/** Opens this number of connections of one address. */
async function many(count: number): Promise<TLSSocket[]> {
  const address = shop.newAddress();
  return Promise.all(Array.from({ length: count }, () => shop.open(address)));
}

/** Waits until the instance has no request: nginx closes idle connections to it. */
function untilFree(): Promise<void> {
  return until(() => shop.upstreamConnections() === 0, 'the end of all requests');
}

/** Reads the whole list, with a delay after each piece until it is over. */
async function readSlowly(isOver: () => boolean): Promise<string> {
  const sent = request({ ...shop.target, agent: false, path: LIST }).end();
  const [res] = (await once(sent, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of res as AsyncIterable<Buffer>) {
    pieces.push(piece);
    if (!isOver()) await setTimeout(50);
  }
  return Buffer.concat(pieces).toString();
}

/** Sends the text repeatedly until the connection is closed. */
function trickle(socket: TLSSocket, text: string): void {
  const timer = setInterval(() => socket.writable && socket.write(text), 500);
  socket.once('close', () => clearInterval(timer));
}

function endpointsSince(line: number): string[] {
  return shop.logged.slice(line).map(({ endpoint }) => String(endpoint));
}

/** Returns how the requests of a path have ended. */
function endsOf(path: string): unknown[] {
  return shop.logged
    .filter(({ endpoint }) => endpoint === `GET ${path}`)
    .map(({ end }) => end ?? 'answered');
}
