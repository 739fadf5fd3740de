import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, test } from '../support/jest.ts';
import { register } from 'prom-client';
import { Shop, useShop } from '../support/shop.ts';
import { unreadable } from '../support/unreadable.ts';
import { until } from '../support/until.ts';

const shop = useShop();

const rejected = async (reason: string) => {
  const text = await register.getSingleMetricAsString('shopfront_http_rejected_total');
  return Number(new RegExp(`\\{reason="${reason}"\\} (\\d+)`).exec(text)?.[1]);
};

describe('P11 malformed HTTP', () => {
  test.each([
    ['HTTP/0.9', 'GET /livez\r\n\r\n'],
    ['HTTP/0.9 by its name', 'GET /livez HTTP/0.9\r\n\r\n'],
    ['HTTP/2 by its name', 'GET /livez HTTP/2.0\r\nHost: shop\r\n\r\n'],
    ['the catalogue by HTTP/0.9', 'GET /api/v2/shop/products\r\n\r\n'],
  ])('P11 is rejected with 400, and the connection is closed: %s', async (_what, request) => {
    const answer = await shop.raw(request);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(answer).not.toMatch(/"items"|"ok"/);
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n', '400 Bad Request'],
    ['HTTP/3', 'GET / HTTP/3.0\r\nHost: shop\r\n\r\n', '400 Bad Request'],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', '400 Bad Request'],
    [
      'a header that is too long',
      `GET / HTTP/1.1\r\nHost: shop\r\nX-A: ${'x'.repeat(20_000)}\r\n\r\n`,
      '431 Request Header Fields Too Large',
    ],
  ])(
    'P11 gets an error response, and is closed and counted: %s',
    async (_what, request, status) => {
      const before = await rejected('malformed');
      expect(await shop.raw(request)).toBe(unreadable(status));
      expect(await rejected('malformed')).toBe(before + 1);
    },
  );

  test.each([
    ['in a head', 'GET /livez HTTP/1.1\r\nHo'],
    [
      'in a body',
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    ],
  ])(
    'P11 a client that disconnects before the end of its request is not counted: %s',
    async (_where, request) => {
      const before = await rejected('malformed');
      for (const leave of ['end', 'destroy', 'resetAndDestroy'] as const) {
        const socket = connect(shop.port, '127.0.0.1');
        await once(socket, 'connect');
        const closed = new Promise((done) => socket.once('close', done));
        await new Promise((done) => socket.resume().write(request, done));
        socket[leave]();
        await closed;
      }
      // A later malformed request shows that nothing else has been counted.
      await shop.raw('hello\r\n\r\n');
      expect(await rejected('malformed')).toBe(before + 1);
    },
  );

  test('P11 connections beyond MAX_CONNECTIONS are closed and counted', async () => {
    const small = await new Shop({ MAX_CONNECTIONS: '1' }).start();
    const port = Number(new URL(small.url).port);
    const first = connect(port, '127.0.0.1');
    const open = [first];
    try {
      await once(first, 'connect');
      const before = await rejected('connections');
      const second = connect(port, '127.0.0.1');
      open.push(second);
      await once(second, 'close');
      await until(async () => (await rejected('connections')) === before + 1, 'the count');
    } finally {
      for (const socket of open) socket.destroy();
      await small.stop();
    }
  });
});
