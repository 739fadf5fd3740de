import { createHook } from 'node:async_hooks';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { readForm, readGraphqlText, readJson } from '../../src/http/body.ts';
import { Exchange } from '../../src/http/exchange.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

/** Request bodies, compressed; each test sends only their beginning. */
const TEXT = Buffer.from('x'.repeat(50_000));
const BODIES = {
  gzip: gzipSync(TEXT),
  deflate: deflateSync(TEXT),
  identity: TEXT,
};
const READERS = { '/graphql': readGraphqlText, '/json': readJson, '/form': readForm };

/** Returns the head of a request without its end and the length of the body. */
function headOf(path: string, coding: string): string {
  const type = path === '/form' ? 'application/x-www-form-urlencoded' : 'application/json';
  return `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: ${type}\r\nContent-Encoding: ${coding}\r\n`;
}

const shop = useShop();

let server: Server;
let outcomes: string[] = [];

beforeAll(async () => {
  server = createServer((req, res) => {
    const exchange = new Exchange(
      req,
      res,
      {},
      {},
      () => false,
      () => undefined,
    );
    const read = READERS[req.url as keyof typeof READERS];
    read(exchange).then(
      () => outcomes.push('read'),
      () => outcomes.push('rejected'),
    );
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

afterAll(() => void server.close());

test.each(
  Object.keys(READERS).flatMap((path) =>
    Object.keys(BODIES).map((coding) => [path, coding] as const),
  ),
)('P16 reading the body ends when the client disconnects: %s, %s', async (path, coding) => {
  outcomes = [];
  const body = BODIES[coding as keyof typeof BODIES];
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  const accepted = once(server, 'request');
  socket.write(`${headOf(path, coding)}Content-Length: 4000\r\n\r\n`);
  socket.write(body.subarray(0, Math.min(20, body.length - 1)));
  await accepted;
  socket.destroy();
  await until(() => outcomes.length > 0, 'the end of the read');
  expect(outcomes).toEqual(['rejected']);
});

test.each(['gzip', 'deflate'] as const)(
  'P16 a compressed body is not processed before its end, even if bytes follow its data: %s',
  async (coding) => {
    outcomes = [];
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    const body = Buffer.concat([BODIES[coding], Buffer.from([0])]);
    socket.write(
      `${headOf('/graphql', coding)}Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body.toString('latin1')}\r\n`,
      'latin1',
    );
    await setTimeout(300);
    expect(outcomes).toEqual([]);
    socket.write('0\r\n\r\n');
    await until(() => outcomes.length > 0, 'the end of the read');
    expect(outcomes).toEqual(['read']);
    socket.destroy();
  },
);

test.each(Object.keys(READERS))(
  'P24 a compressed body has no decoder before its end: %s',
  async (path) => {
    outcomes = [];
    let decoders = 0;
    const hook = createHook({ init: (_id, type) => void (type === 'ZLIB' && decoders++) }).enable();
    const sockets = (['gzip', 'deflate'] as const).map((coding) => {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      const body = BODIES[coding];
      socket.write(`${headOf(path, coding)}Content-Length: ${body.length}\r\n\r\n`);
      socket.write(body.subarray(0, -1));
      return { socket, end: body.subarray(-1) };
    });
    await setTimeout(300);
    expect(decoders).toBe(0);
    for (const { socket, end } of sockets) socket.write(end);
    await until(() => outcomes.length === sockets.length, 'the ends of the reads');
    hook.disable();
    expect(decoders).toBe(sockets.length);
    for (const { socket } of sockets) socket.destroy();
  },
);

test('P24 the body of a client that has disconnected is not decoded', async () => {
  outcomes = [];
  let decoders = 0;
  const hook = createHook({ init: (_id, type) => void (type === 'ZLIB' && decoders++) }).enable();
  server.prependOnceListener('request', (req) => req.once('end', () => req.socket.destroy()));
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(`${headOf('/graphql', 'gzip')}Content-Length: ${BODIES.gzip.length}\r\n\r\n`);
  socket.write(BODIES.gzip);
  await until(() => outcomes.length > 0, 'the end of the read');
  hook.disable();
  expect({ outcomes, decoders }).toEqual({ outcomes: ['rejected'], decoders: 0 });
});

test('P24 an encoded body of more than 16 KB is rejected with 413, whatever its decoded size', async () => {
  const post = async (body: Buffer) => {
    const { status } = await fetch(`${shop.url}/graphql`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' },
      body,
    });
    return status;
  };
  // Stored, not compressed.
  const stored = (size: number) =>
    gzipSync(Buffer.from('{"query":"{ __typename }"}'.padEnd(size - 23)), { level: 0 });
  expect(stored(16 * 1024)).toHaveLength(16 * 1024);
  expect(await post(stored(16 * 1024))).toBe(200);
  expect(await post(stored(16 * 1024 + 1))).toBe(413);
});

test('P24 bodies that end at once are decoded a few at a time', async () => {
  outcomes = [];
  let [decoders, peak] = [0, 0];
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'ZLIB') peak = Math.max(peak, ++decoders - outcomes.length);
    },
  }).enable();
  const sockets = Array.from({ length: 100 }, () => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
    socket.write(`${headOf('/graphql', 'gzip')}Content-Length: ${BODIES.gzip.length}\r\n\r\n`);
    socket.write(BODIES.gzip.subarray(0, -1));
    return socket;
  });
  await setTimeout(300);
  for (const socket of sockets) socket.write(BODIES.gzip.subarray(-1));
  await until(() => outcomes.length === sockets.length, 'the ends of the reads');
  hook.disable();
  expect(outcomes).toEqual(sockets.map(() => 'read'));
  expect(decoders).toBe(sockets.length);
  // A decoder is released shortly before its outcome is known.
  expect(peak).toBeLessThanOrEqual(16);
  for (const socket of sockets) socket.destroy();
});

describe('P21 a chunked body', () => {
  const QUERY = '{"query":"{ __typename }"}';
  /** Returns a request whose body is sent in chunks of `size` bytes. */
  const inChunks = (path: string, headers: string, body: Buffer, size: number) => {
    const chunks = Array.from({ length: Math.ceil(body.length / size) }, (_, index) => {
      const chunk = body.subarray(index * size, (index + 1) * size);
      return `${chunk.length.toString(16)}\r\n${chunk.toString('latin1')}\r\n`;
    });
    const head = `POST ${path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n${headers}\r\n`;
    return `${head}${chunks.join('')}0\r\n\r\n`;
  };
  const JSON_TYPE = 'Content-Type: application/json\r\n';
  const statusOf = async (request: string) =>
    Number(/^HTTP\/1.1 (\d+)/.exec(await shop.raw(request))?.[1]);

  test.each([
    ['JSON', '/graphql', JSON_TYPE, Buffer.from(QUERY.padEnd(2_000))],
    [
      'JSON of REST',
      '/api/v2/auth/login',
      JSON_TYPE,
      Buffer.from('{"username":"ada","password":"x"}'.padEnd(2_000)),
    ],
    [
      'compressed JSON',
      '/graphql',
      `${JSON_TYPE}Content-Encoding: gzip\r\n`,
      gzipSync(QUERY.padEnd(2_000), { level: 0 }),
    ],
    [
      'a form',
      '/token',
      'Content-Type: application/x-www-form-urlencoded\r\n',
      Buffer.from(`username=ada&password=${'x'.repeat(2_000)}`),
    ],
  ])(
    'P21 is rejected with 413 if it has more than 1,000 one-byte chunks: %s',
    async (_what, path, headers, body) => {
      expect(await statusOf(inChunks(path, headers, body, 1))).toBe(413);
    },
  );

  test('P21 is not received further while its request is queued', async () => {
    const { promise: arrival, resolve } = Promise.withResolvers<IncomingMessage>();
    const queueing = createHttpServer(shop.config, resolve);
    await once(queueing.listen(0, '127.0.0.1'), 'listening');
    const socket = connect((queueing.address() as AddressInfo).port, '127.0.0.1');
    socket
      .on('error', () => undefined)
      .write(inChunks('/graphql', JSON_TYPE, Buffer.from(QUERY.padEnd(100_000)), 1));
    const req = await arrival;
    await until(() => req.readableLength > 0, 'a part of the body');
    await setTimeout(500);
    // One read of the connection, 64 KB, has 11,000 such chunks.
    expect(req.readableLength).toBeLessThan(20_000);
    queueing.closeAllConnections();
    queueing.close();
  });

  test.each([
    [16 * 1024, 20],
    [100 * 1024, 64],
    [1_000, 1],
  ])(
    'P21 is read if a slow client could have sent it: %s bytes in chunks of %s',
    async (length, size) => {
      expect(
        await statusOf(inChunks('/graphql', JSON_TYPE, Buffer.from(QUERY.padEnd(length)), size)),
      ).toBe(200);
    },
  );
});
