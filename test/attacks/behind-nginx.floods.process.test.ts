import { Agent } from 'node:https';
import { setTimeout } from 'node:timers/promises';
import { WebSocket } from 'ws';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { closed, statusesOf, untilClosed, useProxiedShop } from '../support/behind-nginx.ts';
import { until } from '../support/until.ts';

// Very many connections and requests of a client, with the limits of deploy/nginx.

const shop = useProxiedShop([
  ['keepalive_requests 1000;', 'keepalive_requests 50;'],
  [/client_header_timeout 10s;/g, 'client_header_timeout 2s;'],
]);

const GET = 'GET /livez HTTP/1.1\r\nHost: shop\r\n\r\n';
const TOO_MANY = 'Too many requests; try again later';
/** The limits of deploy/nginx: concurrent requests, and a burst of requests. */
const [MAX_CONCURRENT, BURST] = [250, 200];

const sockets = new Set<WebSocket>();
afterEach(() => {
  for (const socket of sockets) socket.terminate();
  sockets.clear();
});

describe('a flood of requests', () => {
  test.each([
    ['/livez', { detail: TOO_MANY }],
    [
      '/graphql?query={__typename}',
      { errors: [{ message: TOO_MANY, extensions: { code: 'RATE_LIMITED', retryAfter: 1 } }] },
    ],
  ])(
    'of one address gets 429 with Retry-After in the format of the API; others are served: %s',
    async (path, body) => {
      const localAddress = shop.newAddress();
      const agent = new Agent({ keepAlive: true, maxSockets: 20 });
      const flood = Array.from({ length: 2 * BURST }, () =>
        shop.send(path, { localAddress, agent }),
      );
      const beside = shop.expectServed();
      const replies = await Promise.all(flood);
      agent.destroy();
      await beside;
      expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 429]));
      const rejected = replies.find(({ status }) => status === 429);
      expect(JSON.parse(rejected?.text ?? '')).toEqual(body);
      expect(rejected?.headers).toMatchObject({
        'retry-after': '1',
        'content-type': 'application/json',
        'access-control-allow-origin': '*',
        'cache-control': 'no-store',
        'strict-transport-security': expect.stringMatching(/^max-age=\d+/),
      });
      await shop.expectServed();
    },
  );

  test('on one connection ends it after keepalive_requests', async () => {
    const answer = await shop.raw(GET.repeat(60));
    expect(statusesOf(answer)).toEqual(Array(50).fill(200));
    expect(answer.match(/\r\nConnection: close\r\n/g)).toHaveLength(1);
  });

  test('H12 in one packet is limited like any other', async () => {
    const address = shop.newAddress();
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => shop.raw(GET.repeat(50), address)),
    );
    const statuses = answers.flatMap(statusesOf);
    expect(statuses).toHaveLength(8 * 50);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    await shop.expectServed();
  });
});

describe('a flood of connections', () => {
  test('H10 of one address, each with a request, gets 429 beyond the limit; others are served', async () => {
    const address = shop.newAddress();
    const head =
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{';
    const replies: string[] = [];
    for (let count = 0; count < MAX_CONCURRENT + 50; count++) {
      const socket = await shop.open(address);
      void untilClosed(socket).then((answer) => replies.push(answer));
      socket.write(head);
      // Below the limit of requests per second.
      if (count >= BURST - 1) await setTimeout(25);
    }
    await until(() => replies.length >= 50, 'the rejections');
    expect(new Set(replies.flatMap(statusesOf))).toEqual(new Set([429]));
    await shop.expectServed();
    expect(shop.upstreamConnections()).toBeLessThanOrEqual(3);
    shop.closeSockets();
    await until(() => shop.connections() === 0, 'the end of all connections');
  });

  test('H10 a thousand that send nothing, or half of a request, are closed; others are served', async () => {
    const address = shop.newAddress();
    const silent = await Promise.all(
      Array.from({ length: 1_000 }, () => shop.openPlain(shop.port, address)),
    );
    const secure = await Promise.all(Array.from({ length: 100 }, () => shop.open(address)));
    for (const socket of secure) socket.write(GET.slice(0, 30));
    await shop.expectServed();
    expect(shop.upstreamConnections()).toBeLessThanOrEqual(3);
    await Promise.all([...silent, ...secure].map((socket) => closed(socket.resume())));
    await shop.expectServed();
  });
});
