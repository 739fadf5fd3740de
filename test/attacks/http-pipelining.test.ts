import { once } from 'node:events';
import { readdirSync, readlinkSync, statSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { setImmediate, setTimeout } from 'node:timers/promises';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import { register } from 'prom-client';
import { createApp, type App } from '../../src/app.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import { GRACE_MS, stopListening } from '../../src/http/drain.ts';
import { MAX_CHUNKS, readGraphqlText, unreadChunks } from '../../src/http/body.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { abortResponse, inFlight } from '../../src/http/in-flight.ts';
import { markClosing } from '../../src/http/closing-connection.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { admission } from '../../src/http/admission.ts';
import type { Dependencies } from '../../src/http/dependencies.ts';
import type { Exchange } from '../../src/http/exchange.ts';
import { Shop } from '../support/shop.ts';
import { openSession } from '../support/logins.ts';
import { openConnections } from '../support/open-connections.ts';
import { until } from '../support/until.ts';
import { useStoppedClock } from '../support/clock.ts';

// Pipelined requests (RFC 9112, 9.3.2) to a server with admission.

const shop = new Shop({ MAX_REQUESTS_IN_FLIGHT: '100' });

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: shop\r\n${headers}\r\n`;
const LIVE = get('/livez');
const PAGE = get('/api/v2/shop/products');
const STREAM = get(
  `/graphql?query=${encodeURIComponent('subscription { productChanged { pk } }')}`,
  'Accept: text/event-stream\r\n',
);
const UPGRADE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2hvcGZyb250IHNob3BmcA==\r\n';

const calls = new CallCounter();
let app: App;
let server: Server;
let draining = false;
const sockets = new Set<Socket>();
// With a stopped clock, the event loop is never late, so no request is rejected for overload.
const clock = useStoppedClock();

beforeAll(async () => {
  await shop.start();
  await shop.empty();
  const { config, database } = shop;
  const services: Dependencies = {
    config,
    log: openLog({ logLevel: 'silent' }),
    calls,
    now: () => new Date(),
    database: () => database,
    observe: () => undefined,
    isDraining: () => draining,
  };
  app = await createApp(services);
  server = createHttpServer(config, admission(services, app.listener), app.upgrades);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});

// After every test, no request of a closed connection is counted, and the next one succeeds.
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await until(() => inFlight.size === 0, 'the end of all requests');
  const { status } = await fetch(`${urlOf(server)}/api/v2/shop/products`);
  if (status !== 200) throw new Error(`the shop responds with ${status}`);
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await app.stop();
  await shop.stop();
  inFlight.max = Infinity;
});

test('H12 responses are sent in the order of their requests', async () => {
  const answer = await exchange(
    (get('/nowhere') + LIVE + PAGE).repeat(20) + get('/livez', 'Connection: close\r\n'),
  );
  expect(statuses(answer)).toEqual([
    ...Array.from({ length: 20 }, () => [404, 200, 200]).flat(),
    200,
  ]);
});

test('H12 a client that fills a packet with requests and never reads is disconnected, and blocks no others', async () => {
  const socket = await opened();
  const gone = closed(socket);
  socket.on('error', () => undefined).pause();
  socket.write(LIVE.repeat(1_900));
  await until(async () => (await openConnections(server)) === 0, 'the end of the connection');
  expect((await fetch(`${urlOf(server)}/api/v2/shop/products`)).status).toBe(200);
  socket.resume();
  await gone;
});

test('H12 unread responses use no place in the queue', async () => {
  const { keepAliveTimeout } = server;
  // Idle connections are not what is tested here.
  server.keepAliveTimeout = 600_000;
  try {
    const readers = await Promise.all(Array.from({ length: 8 }, opened));
    for (const reader of readers) reader.pause().write(LIVE.repeat(60));
    await until(() => inFlight.size === 0, 'the responses');
    expect(readers.some(({ destroyed }) => destroyed)).toBe(false);
  } finally {
    server.keepAliveTimeout = keepAliveTimeout;
  }
});

test.each([
  ['304', get('/api/v2/shop/products', 'If-None-Match: *\r\n')],
  ['the head of a stream', get('/api/v1/shop/products').replace('GET', 'HEAD')],
])(
  'H12 a response without a body that cannot be sent uses no place in the queue: %s',
  async (_, request) => {
    const arrived = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    // As if its client had read nothing for long.
    server.prependOnceListener('request', (req: IncomingMessage) =>
      Object.assign(req.socket, { _write: () => undefined, _writev: () => undefined }),
    );
    const socket = await opened();
    socket.write(request);
    const [, res] = await arrived;
    await until(() => res.writableEnded && inFlight.size === 0, 'the end of the request');
    expect(res.writableFinished).toBe(false);
    res.req.socket.destroy();
  },
);

test('P17 unread files use no place in the queue', async () => {
  const [name] = largestAsset();
  const readers = await Promise.all(Array.from({ length: 3 }, opened));
  const arrived = once(server, 'request');
  for (const reader of readers) reader.pause().write(get(`/assets/${name}`).repeat(60));
  await arrived;
  await until(() => inFlight.size === 0, 'an empty queue');
  expect((await fetch(`${urlOf(server)}/api/v2/shop/products`)).status).toBe(200);
  expect(readers.some(({ destroyed }) => destroyed)).toBe(false);
});

test('P17 files behind an unread response are not opened', async () => {
  const [name] = largestAsset();
  const socket = await opened();
  socket.on('error', () => undefined).resume();
  socket.write(STREAM);
  await until(async () => (await subscriptionConnections()) === 1, 'the event stream');
  let arrived = 0;
  const count = () => arrived++;
  server.on('request', count);
  socket.write(get(`/assets/${name}`).repeat(40));
  await until(() => arrived >= 40, 'the requests');
  server.off('request', count);
  // Each was opened in less than this.
  await setTimeout(200);
  const open = readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).endsWith(name);
    } catch {
      return false;
    }
  });
  expect(open).toEqual([]);
});

describe('H12 a request behind a response that closes the connection', () => {
  const create = (barcode: string) => {
    const body = JSON.stringify({ name: 'Behind', barcode, price: 1 });
    return `POST /api/v1/shop/product/ HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  };
  const head = (path: string, length: number) =>
    `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
  const stored = async () => (await shop.sql("select from product where name = 'Behind'")).length;
  const executed = () => calls.take().reduce((sum, { calls: count }) => sum + count, 0);
  let token: string;

  beforeEach(async () => {
    await shop.empty();
    calls.take();
    token = shop.tokenOf(await shop.makeUser({ scopes: ['products:write'] }));
  });

  test.each([
    ['no credentials', head('/api/v1/shop/product/', 2)],
    ['an unknown path', head('/nowhere', 2)],
    ['a method that the path lacks', head('/blog', 2).replace('POST', 'PUT')],
    ['no credentials, for a larger body', head('/session/login', 20_000)],
  ])('H12 is answered or not executed, in the same packet: %s', async (_what, first) => {
    const [, length] = /Length: (\d+)/.exec(first) ?? [];
    const sent = `${first}${'x'.repeat(Number(length))}`;
    // The first request starts immediately, or in the next turn of the event loop.
    for (const passed of [0, 1_000]) {
      clock.advance(passed);
      const answer = await exchange(
        `${sent}${create(shop.newBarcode())}${get('/livez', 'Connection: close\r\n')}`,
      );
      await until(() => inFlight.size === 0, 'the end of all requests');
      expect(statuses(answer).filter((status) => status === 201)).toHaveLength(await stored());
      expect(statuses(answer)[0]).toBeGreaterThanOrEqual(400);
      await shop.sql("delete from product where name = 'Behind'");
    }
  });

  test('H12 is not executed while the server is draining, because each response closes its connection', async () => {
    draining = true;
    try {
      const answer = await exchange(PAGE + create(shop.newBarcode()));
      expect([statuses(answer), await stored()]).toEqual([[200], 0]);
      expect(answer).toContain('\r\nConnection: close');
    } finally {
      draining = false;
    }
  });

  test('H12 is answered if the body of the rejected request has been received', async () => {
    // Starts in the next turn of the event loop, not immediately.
    clock.advance(1_000);
    const answer = await exchange(
      `${head('/api/v1/shop/product/', 2)}{}${create(shop.newBarcode())}${get('/livez', 'Connection: close\r\n')}`,
    );
    expect(statuses(answer)).toEqual([401, 201, 200]);
  });

  test('H12 is not executed if the rejected request has no Host header (RFC 9112, 3.2)', async () => {
    clock.advance(1_000);
    const answer = await exchange(`GET /nowhere HTTP/1.1\r\n\r\n${create(shop.newBarcode())}`);
    expect([statuses(answer), await stored()]).toEqual([[400], 0]);
  });

  test('H12 is not executed behind a body that arrives later', async () => {
    const socket = await opened();
    let answer = '';
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    socket.write(head('/api/v1/shop/product/', 20));
    await once(socket, 'data');
    socket.write('x'.repeat(20) + create(shop.newBarcode()));
    await closed(socket);
    await until(() => inFlight.size === 0, 'the end of all requests');
    expect([statuses(answer), await stored(), executed()]).toEqual([[401], 0, 1]);
  });

  test('H12 is not executed behind a request with too many headers', async () => {
    const answer = await exchange(get('/livez', 'a:\r\n'.repeat(200)) + create(shop.newBarcode()));
    await until(() => inFlight.size === 0, 'the end of all requests');
    expect([statuses(answer), await stored(), executed()]).toEqual([[431], 0, 0]);
  });
});

describe('H12 malformed HTTP behind a request', () => {
  const list = get('/api/v2/shop/products');

  test('H12 does not replace its response', async () => {
    const answer = await exchange(`${list}hello\r\n\r\n`);
    expect([statuses(answer), answer.includes('"items"')]).toEqual([[200], true]);
  });

  test('H12 does not replace the responses of several requests', async () => {
    await shop.makeProducts(3);
    const answer = await exchange(
      `${list}${get('/nowhere')}${get('/api/v1/shop/products')}hello\r\n\r\n`,
    );
    expect(statuses(answer)).toEqual([200, 404, 200]);
    expect(answer).toMatch(/0\r\n\r\n$/);
  });

  test('H12 replaces the response of the request whose body contains it', async () => {
    const broken =
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
    expect(statuses(await exchange(list + broken))).toEqual([200, 400]);
  });

  test('H12 has no further effect when it is repeated', async () => {
    const socket = await opened();
    let answer = '';
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    socket.write(`${list}hello\r\n\r\n`);
    socket.write('hello\r\n\r\n');
    await closed(socket);
    expect(statuses(answer)).toEqual([200]);
  });
});

test('P23 many requests behind a response that closes the connection end it, even if nothing has been sent', async () => {
  const socket = await opened();
  socket.on('error', () => undefined).resume();
  socket.write(`${STREAM}GET /livez HTTP/1.1\r\n\r\n`);
  await until(() => {
    socket.write(LIVE);
    return socket.destroyed;
  }, 'the end of the connection');
});

describe('P23 the body of a request behind a response that closes the connection', () => {
  const received: IncomingMessage[] = [];
  let other: Server;
  let socket: Socket;

  beforeEach(async () => {
    received.length = 0;
    other = createHttpServer(shop.config, (req, res) => {
      markClosing(req.socket);
      res.writeHead(200, { Connection: 'close' }).write('begun');
    });
    other.on('request', (req: IncomingMessage) => received.push(req));
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    socket = connect(portOf(other), '127.0.0.1');
    socket.on('error', () => undefined).resume();
    socket.write(LIVE);
    await until(() => received.length === 1, 'the response that closes the connection');
    socket.write('POST /token HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n');
  });

  afterEach(() => {
    other.closeAllConnections();
    other.close();
  });

  test('P23 is not stored', async () => {
    socket.write(`${'1\r\nx\r\n'.repeat(1_000)}0\r\n\r\n`);
    await until(() => received[1]?.complete === true, 'the body');
    expect(received.map(({ readableLength }) => readableLength)).toEqual([0, 0]);
  });

  test('P23 ends the connection when it has more than 1 MB', async () => {
    const piece = `3e8\r\n${'x'.repeat(1_000)}\r\n`.repeat(100);
    await until(() => {
      if (socket.writableLength === 0) socket.write(piece);
      return socket.destroyed;
    }, 'the end of the connection');
  });
});

test.each([
  ['POST', '/session/login'],
  ['GET', '/api/v2/shop/products'],
])(
  'P23 bodies of many chunks behind an unread response end their connection: %s',
  async (method, path) => {
    const socket = await opened();
    socket.on('error', () => undefined).resume();
    socket.write(STREAM);
    await until(async () => (await subscriptionConnections()) === 1, 'the event stream');
    const head = `${method} ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`;
    const gone = closed(socket);
    socket.write(`${head}${'1\r\nx\r\n'.repeat(500)}0\r\n\r\n`.repeat(10));
    await gone;
  },
);

test.each([
  ['headers', get('/livez', 'a:\r\n'.repeat(90))],
  ['trailers', `${get('/livez', 'Transfer-Encoding: chunked\r\n')}0\r\n${'a:\r\n'.repeat(90)}\r\n`],
  ['a long URL', get(`/livez?${'x'.repeat(15_000)}`)],
  ['60 KB', `${get('/livez', 'Content-Length: 60000\r\n')}${'x'.repeat(60_000)}`],
])('P23 many requests of %s behind an unread response end their connection', async (_, request) => {
  const socket = await opened();
  socket.on('error', () => undefined).resume();
  socket.write(STREAM);
  await until(async () => (await subscriptionConnections()) === 1, 'the event stream');
  const gone = closed(socket);
  socket.write(request.repeat(60));
  await gone;
});

test.each([
  ['of a declared length', 'Content-Length: 20000000\r\n\r\n'],
  ['in chunks', `Transfer-Encoding: chunked\r\n\r\n${(20_000_000).toString(16)}\r\n`],
])(
  'H7 a client can read the response that rejects 20 MB %s while it sends them',
  async (_, head) => {
    const arrived = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    const socket = (await opened()).pause();
    socket.on('error', () => undefined);
    socket.write(
      `POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n${head}`,
    );
    socket.write(Buffer.alloc(20_000_000, ' '));
    const [, res] = await arrived;
    await until(() => res.headersSent, 'the response');
    // Without time for the client, the server would have closed the connection by now.
    for (let turn = 0; turn < 100; turn++) await setImmediate();
    const [answer] = (await once(socket.resume(), 'data')) as [Buffer];
    expect(statuses(answer.toString())).toEqual([413]);
  },
);

test('P23 the body of a client that has disconnected is not waited for', async () => {
  const read = Promise.withResolvers<unknown>();
  const other = createHttpServer(shop.config, (req) =>
    req.once('close', () => read.resolve(readGraphqlText({ req } as Exchange))),
  );
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const socket = connect(portOf(other), '127.0.0.1');
  socket.write(
    'POST / HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    () => socket.destroy(),
  );
  await expect(read.promise).rejects.toMatchObject({ status: 400 });
  other.close();
});

test('P23 the body of an event stream by GET is not kept', async () => {
  const arrived = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = await opened();
  socket.write(STREAM.replace(/\r\n$/, 'Transfer-Encoding: chunked\r\n\r\n'));
  socket.write(`${'1\r\nx\r\n'.repeat(1_000)}0\r\n\r\n`);
  const [req] = await arrived;
  await until(() => req.complete, 'the body');
  await until(() => req.readableLength === 0, 'an empty buffer');
});

test('P23 the body of a request for a list is not kept while the list waits for its reader', async () => {
  const user = await shop.makeUser();
  await shop.sql(`
    insert into blog_entry (creator_pk, title, body, published, created_at, updated_at)
    select ${user.pk}, 'Entry', repeat('x', 50000), true, now(), now() from generate_series(1, 400) n`);
  const { key } = await openSession(shop, user);
  const arrived = once(server, 'request') as Promise<[IncomingMessage]>;
  const socket = (await opened()).pause();
  socket.write(get('/blog', `X-SESSION-ID: ${key}\r\nTransfer-Encoding: chunked\r\n`));
  socket.write(`20\r\n${'x'.repeat(32)}\r\n`.repeat(1_500));
  const [req] = await arrived;
  await until(() => req.socket.writableLength > 0, 'an unread response');
  expect(unreadChunks(req)).toBe(0);
});

test.each(['with its request', 'after its request'])(
  'P23 a body of many chunks %s ends the connection of an event stream by GET',
  async (when) => {
    const socket = await opened();
    socket.on('error', () => undefined).resume();
    const gone = closed(socket);
    const head = STREAM.replace(/\r\n$/, 'Transfer-Encoding: chunked\r\n\r\n');
    const body = `${'1\r\nx\r\n'.repeat(4_000)}0\r\n\r\n`;
    if (when === 'with its request') socket.write(head + body);
    else {
      socket.write(head);
      await until(async () => (await subscriptionConnections()) === 1, 'the subscription');
      socket.write(body);
    }
    await gone;
    await until(async () => (await subscriptionConnections()) === 0, 'the end of the subscription');
  },
);

describe('P23 a packet of small chunks', () => {
  const chunks = `${'1\r\nx\r\n'.repeat(10_000)}0\r\n\r\n`;
  const login = (headers = '') =>
    `POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n${headers}Transfer-Encoding: chunked\r\n\r\n`;

  test('P23 behind an event stream, no more is stored than a reader accepts', async () => {
    const requests: IncomingMessage[] = [];
    const add = (req: IncomingMessage) => requests.push(req);
    server.on('request', add);
    const socket = await opened();
    socket.on('error', () => undefined).resume();
    socket.write(STREAM + login() + chunks);
    const stored = () => Math.max(0, ...requests.map(unreadChunks));
    await until(() => stored() > MAX_CHUNKS, 'the chunks');
    server.off('request', add);
    await setImmediate();
    expect(stored()).toBe(MAX_CHUNKS + 1);
  });

  test('P23 is rejected as too large', async () => {
    expect(statuses(await exchange(login('Connection: close\r\n') + chunks))).toEqual([413]);
  });

  test('P23 is rejected as too large behind another request', async () => {
    expect(statuses(await exchange(PAGE + login('Connection: close\r\n') + chunks))).toEqual([
      200, 413,
    ]);
  });
});

test('P23 requests with an unknown expectation use the same queue as others', async () => {
  const socket = await opened();
  socket.on('error', () => undefined).resume();
  socket.write(STREAM + get('/livez', 'Expect: x\r\n').repeat(100));
  await closed(socket);
  await until(async () => (await subscriptionConnections()) === 0, 'the end of the subscriptions');
});

test('H12 a slowly read response is sent completely while the server is draining', async () => {
  const whole = 'x'.repeat(30_000_000);
  const other = createHttpServer(shop.config, (_req, res) => void res.end(whole));
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const socket = connect(portOf(other), '127.0.0.1');
  socket.write(LIVE);
  await once(socket, 'readable');
  const drain = await stopListening(other);
  const drained = drain();
  // Longer than the grace period for the next request of a client.
  await setTimeout(2 * GRACE_MS);
  let length = 0;
  socket.on('data', (piece: Buffer) => (length += piece.length));
  await Promise.all([drained, closed(socket)]);
  expect(length).toBeGreaterThan(whole.length);
});

describe('H12 two requests received together', () => {
  const responses: ServerResponse[] = [];
  let other: Server;
  let socket: Socket;
  let answer: string;
  let gone: Promise<void>;

  beforeEach(async () => {
    responses.length = 0;
    other = createHttpServer(shop.config, (_req, res) => void responses.push(res));
    // The server must not close the connection as idle.
    other.keepAliveTimeout = other.timeout = 600_000;
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    socket = connect(portOf(other), '127.0.0.1');
    answer = '';
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    gone = closed(socket);
    socket.write(LIVE + LIVE);
    await next(1);
  });

  afterEach(() => {
    other.closeAllConnections();
    other.close();
  });

  test('H12 the second is executed when the first has its response', async () => {
    socket.write(LIVE);
    await once(other, 'request');
    expect(responses.length).toBe(1);
    responses[0]?.end('whole');
    (await next(2)).end('whole');
    (await next(3)).end('whole');
    await until(() => statuses(answer).length === 3, 'the responses');
  });

  test('H12 the second is not executed if the first closes the connection', async () => {
    responses[0]?.setHeader('Connection', 'close').end('whole');
    await gone;
    expect([statuses(answer), responses.length]).toEqual([[200], 1]);
  });

  test('H12 the second is not executed if the first is of HTTP/1.0, which Node ends with the connection', async () => {
    const old = connect(portOf(other), '127.0.0.1');
    const whole = textOf(old);
    old.write('GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n'.repeat(2));
    (await next(2)).write('whole');
    responses[1]?.end();
    expect(statuses(await whole)).toEqual([200]);
    expect(responses.length).toBe(2);
  });

  test('H12 the second is not executed if the client disconnects', async () => {
    socket.destroy();
    await once(responses[0] as ServerResponse, 'close');
    responses[0]?.end('whole');
    await setImmediate();
    expect(responses.length).toBe(1);
  });

  test('H12 the second ends the connection if a third arrives too late', async () => {
    socket.write(LIVE.slice(0, -2));
    rejectAsLate();
    socket.write(LIVE.slice(-2));
    await once(other, 'request');
    responses[0]?.end('whole');
    (await next(2)).end('whole');
    await gone;
    expect([statuses(answer), responses.length]).toEqual([[200, 200], 2]);
  });

  test('H12 the second ends the connection if it cannot be completed, and a third is not executed', async () => {
    socket.write(LIVE);
    await once(other, 'request');
    responses[0]?.end('whole');
    (await next(2)).write('half');
    abortResponse(responses[1] as ServerResponse);
    await gone;
    expect([statuses(answer)[0], responses.length]).toEqual([200, 2]);
  });

  test('H12 a third is executed if the responses in front of it are aborted after their end', async () => {
    responses[0]?.end('whole');
    (await next(2)).end('whole');
    await until(() => statuses(answer).length === 2, 'both responses');
    responses.forEach(abortResponse);
    socket.write(LIVE);
    await next(3);
  });

  test('H12 a third that is not executed gets no 100 Continue (RFC 9110, 10.1.1)', async () => {
    socket.write('POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\n');
    rejectAsLate();
    socket.write('Expect: 100-continue\r\n\r\n');
    await once(other, 'request');
    responses[0]?.end('whole');
    (await next(2)).end('whole');
    await gone;
    expect(statuses(answer)).toEqual([200, 200]);
  });

  function rejectAsLate(): void {
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    other.emit('clientError', late, responses[0]?.req.socket);
  }

  async function next(count: number): Promise<ServerResponse> {
    await until(() => responses.length === count, `request ${count}`);
    return responses[count - 1] as ServerResponse;
  }
});

test('P23 packets behind malformed HTTP add no listeners to a connection whose client never reads', async () => {
  const whole = 'x'.repeat(30_000_000);
  const accepted = Promise.withResolvers<Socket>();
  const other = createHttpServer(shop.config, (req, res) => {
    res.end(whole);
    accepted.resolve(req.socket);
  });
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const socket = connect(portOf(other), '127.0.0.1').pause();
  sockets.add(socket);
  socket.write(`${get('/livez', 'Transfer-Encoding: chunked\r\n')}zz\r\n`);
  const ended = await accepted.promise;
  const before = ended.bytesRead;
  for (let packets = 1; packets <= 20; packets++) {
    socket.write('x');
    await until(() => ended.bytesRead >= before + packets, 'the packet');
  }
  expect(ended.listenerCount('finish')).toBeLessThan(10);
  other.closeAllConnections();
  other.close();
});

test('H12 requests queued before a CONNECT end with the connection', async () => {
  const socket = await opened();
  socket.on('error', () => undefined);
  socket.write(
    `${get('/api/v1/shop/products') + STREAM.repeat(60)}CONNECT shop:443 HTTP/1.1\r\nHost: shop\r\n\r\n`,
  );
  await closed(socket.resume());
  await until(async () => (await subscriptionConnections()) === 0, 'the end of the subscriptions');
});

test.each([
  ['one that would be rejected', get('/graphql', `Host: other\r\n${UPGRADE}`)],
  ['a valid one', get('/graphql', UPGRADE)],
])('H12 an upgrade behind an unanswered request is rejected: %s', async (_what, request) => {
  // Node reads nothing behind an upgrade in the same packet.
  const answer = await exchange(PAGE + request);
  expect(statuses(answer)).toEqual([200, 400]);
});

test('H9 a client whose WebSocket is rejected is disconnected, even if it keeps its side open', async () => {
  const socket = connect({ port: portOf(server), host: '127.0.0.1', allowHalfOpen: true });
  sockets.add(socket);
  socket.write(get('/graphql', `Host: other\r\n${UPGRADE}`));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(statuses(answer.toString())).toEqual([400]);
  await until(async () => (await openConnections(server)) === 0, 'the end of the connection');
  expect(socket.writable).toBe(true);
});

/** Sends `text`, and returns the response until the server closes the connection. */
async function exchange(text: string): Promise<string> {
  const socket = await opened();
  let answer = '';
  socket.on('data', (piece: Buffer) => (answer += piece.toString('latin1')));
  socket.write(text);
  await once(socket, 'close');
  return answer;
}

async function opened(): Promise<Socket> {
  const socket = connect(portOf(server), '127.0.0.1');
  sockets.add(socket);
  await once(socket, 'connect');
  return socket;
}

/** Waits until the socket is closed, with or without an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((done) => void socket.once('close', () => done()));
}

async function subscriptionConnections(): Promise<number> {
  const { values: [{ value } = { value: -1 }] = [] } =
    (await register.getSingleMetric('shopfront_subscription_connections')?.get()) ?? {};
  return value;
}

/** Returns the name and the size of the largest file of the pages. */
function largestAsset(): [string, number] {
  const [largest = ['', 0]] = readdirSync('dist/web/assets')
    .map((file): [string, number] => [file, statSync(`dist/web/assets/${file}`).size])
    .toSorted(([, a], [, b]) => b - a);
  return largest;
}

function urlOf(of: Server): string {
  return `http://127.0.0.1:${portOf(of)}`;
}

function portOf(of: Server): number {
  return (of.address() as AddressInfo).port;
}

function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
