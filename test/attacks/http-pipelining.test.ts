import { once } from 'node:events';
import { readdirSync, statSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { register } from 'prom-client';
import { createApp, type App } from '../../src/app.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import { GRACE_MS, stopListening } from '../../src/http/drain.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { breakOff, closeAfterLast, inFlight, mayQueue } from '../../src/http/in-flight.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { admission } from '../../src/http/admission.ts';
import type { Services } from '../../src/http/dependencies.ts';
import { Shop } from '../support/shop.ts';
import { until } from '../support/until.ts';
import { useStoppedClock } from '../support/clock.ts';

// Requests that are sent without waiting for the answers to those before them (RFC 9112, 9.3.2), to the server as it is behind its admission.

const shop = new Shop({ MAX_REQUESTS_IN_FLIGHT: '100' });

const get = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: shop\r\n${headers}\r\n`;
const LIVE = get('/livez');
const PAGE = get('/api/v2/shop/products');
const STREAM = get(`/graphql?query=${encodeURIComponent('subscription { productChanged { pk } }')}`, 'Accept: text/event-stream\r\n');
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: c2hvcGZyb250IHNob3BmcA==\r\n';

const calls = new CallCounter();
let app: App;
let server: Server;
let draining = false;
const sockets = new Set<Socket>();
// On a clock that stands still, the event loop is never late: none is refused because the machine is busy.
const clock = useStoppedClock();

beforeAll(async () => {
  await shop.start();
  await shop.empty();
  const { config, database } = shop;
  const services: Services = {
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

// Whatever was sent, nothing of it is counted once its connection is gone, and the next is served.
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await until(() => inFlight.size === 0, 'the end of all requests');
  const { status } = await fetch(`${urlOf(server)}/api/v2/shop/products`);
  if (status !== 200) throw new Error(`the shop answers ${status}`);
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await app.stop();
  await shop.stop();
  inFlight.max = Infinity;
});

test('H12 answers come in the order of their requests', async () => {
  const answer = await spoken((get('/nowhere') + LIVE + PAGE).repeat(20) + get('/livez', 'Connection: close\r\n'));
  expect(statuses(answer)).toEqual([...Array.from({ length: 20 }, () => [404, 200, 200]).flat(), 200]);
});

test('H12 who asks as often as fits into a packet and reads nothing is cut off, and keeps nobody out', async () => {
  const socket = await opened();
  const gone = closed(socket);
  socket.on('error', () => undefined).pause();
  socket.write(LIVE.repeat(1_900));
  await until(async () => (await connections()) === 0, 'the end of the connection');
  expect((await fetch(`${urlOf(server)}/api/v2/shop/products`)).status).toBe(200);
  socket.resume();
  await gone;
});

test('H12 answers that nobody reads hold no place', async () => {
  const { keepAliveTimeout } = server;
  // Idle connections are not what is tested here.
  server.keepAliveTimeout = 600_000;
  try {
    const readers = await Promise.all(Array.from({ length: 8 }, opened));
    for (const reader of readers) reader.pause().write(LIVE.repeat(60));
    await until(() => inFlight.size === 0, 'the answers');
    expect(readers.some(({ destroyed }) => destroyed)).toBe(false);
  } finally {
    server.keepAliveTimeout = keepAliveTimeout;
  }
});

test('P23 long answers that nobody reads end their connection, and the first megabyte of them does not', async () => {
  const path = `/graphql?query=${encodeURIComponent('{ __schema { types { name description fields { name description } } } }')}`;
  const { size } = await (await fetch(urlOf(server) + path)).blob();
  expect(size).toBeGreaterThan(20_000);
  const { keepAliveTimeout } = server;
  // Idle connections are not what is tested here.
  server.keepAliveTimeout = 600_000;
  try {
    const few = Math.floor(1_000_000 / size);
    const patient = (await opened()).pause();
    patient.write(get(path).repeat(few));
    const greedy = (await opened()).on('error', () => undefined).pause();
    greedy.write(get(path).repeat(60));
    await until(() => inFlight.size === 0, 'the answers');
    const gone = closed(greedy);
    greedy.resume();
    expect(await Promise.race([gone, setTimeout(2_000, 'open')])).toBeUndefined();
    let received = 0;
    patient.on('data', (piece: Buffer) => (received += piece.length)).resume();
    await until(() => received > few * size, 'all answers');
  } finally {
    server.keepAliveTimeout = keepAliveTimeout;
  }
});

test('P17 files that nobody reads hold no place', async () => {
  const [name] = readdirSync('dist/web/assets')
    .map((file) => [file, statSync(`dist/web/assets/${file}`).size] as const)
    .toSorted(([, a], [, b]) => b - a)
    .map(([file]) => file);
  let arrived = 0;
  const count = () => arrived++;
  server.on('request', count);
  const readers = await Promise.all(Array.from({ length: 3 }, opened));
  for (const reader of readers) reader.pause().write(get(`/assets/${name}`).repeat(60));
  await until(() => arrived === 180, 'the requests');
  server.off('request', count);
  await until(() => inFlight.size === 0, 'the requests to be set aside');
  expect((await fetch(`${urlOf(server)}/api/v2/shop/products`)).status).toBe(200);
  expect(readers.some(({ destroyed }) => destroyed)).toBe(false);
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
    // The first is started as its head is read, and in the next turn of the event loop.
    for (const passed of [0, 1_000]) {
      clock.pass(passed);
      const answer = await spoken(`${sent}${create(shop.newBarcode())}${get('/livez', 'Connection: close\r\n')}`);
      await until(() => inFlight.size === 0, 'the end of all requests');
      expect(statuses(answer).filter((status) => status === 201)).toHaveLength(await stored());
      expect(statuses(answer)[0]).toBeGreaterThanOrEqual(400);
      await shop.sql("delete from product where name = 'Behind'");
    }
  });

  test('H12 is answered while the server is draining, and that response closes the connection', async () => {
    draining = true;
    try {
      const answer = await spoken(create(shop.newBarcode()) + PAGE);
      expect(statuses(answer)).toEqual([201, 200]);
      expect(answer.split('HTTP/1.1 ').map((response) => response.includes('\r\nConnection: close'))).toEqual([false, false, true]);
    } finally {
      draining = false;
    }
  });

  test('H12 is answered where the body of the refused request has been received', async () => {
    // In the next turn of the event loop, and not as its head is read.
    clock.pass(1_000);
    const answer = await spoken(
      `${head('/api/v1/shop/product/', 2)}{}${create(shop.newBarcode())}${get('/livez', 'Connection: close\r\n')}`,
    );
    expect(statuses(answer)).toEqual([401, 201, 200]);
  });

  test('H12 is answered where the refused request has no Host header (RFC 9112, 3.2)', async () => {
    clock.pass(1_000);
    const answer = await spoken(`GET /nowhere HTTP/1.1\r\n\r\n${create(shop.newBarcode())}`);
    expect([statuses(answer), await stored()]).toEqual([[400, 201], 1]);
  });

  test('H12 is not executed behind a body that comes later', async () => {
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
    const answer = await spoken(get('/livez', 'a:\r\n'.repeat(200)) + create(shop.newBarcode()));
    await until(() => inFlight.size === 0, 'the end of all requests');
    expect([statuses(answer), await stored(), executed()]).toEqual([[431], 0, 0]);
  });
});

describe('H12 what is no HTTP behind a request', () => {
  const list = get('/api/v2/shop/products');

  test('H12 does not take its response', async () => {
    const answer = await spoken(`${list}hello\r\n\r\n`);
    expect([statuses(answer), answer.includes('"items"')]).toEqual([[200], true]);
  });

  test('H12 does not take those of several', async () => {
    await shop.makeProducts(3);
    const answer = await spoken(`${list}${get('/nowhere')}${get('/api/v1/shop/products')}hello\r\n\r\n`);
    expect(statuses(answer)).toEqual([200, 404, 200]);
    expect(answer).toMatch(/0\r\n\r\n$/);
  });

  test('H12 takes that of the request whose body it is in', async () => {
    const broken =
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n';
    expect(statuses(await spoken(list + broken))).toEqual([200, 400]);
  });

  test('H12 and more of it does no more', async () => {
    const socket = await opened();
    let answer = '';
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    socket.write(`${list}hello\r\n\r\n`);
    socket.write('hello\r\n\r\n');
    await closed(socket);
    expect(statuses(answer)).toEqual([200]);
  });
});

test('P23 requests behind a response that closes the connection end it when there are many, though nothing is sent before it', async () => {
  const socket = await opened();
  socket.on('error', () => undefined).resume();
  socket.write(STREAM + get('/livez', 'a:\r\n'.repeat(200)));
  await until(() => {
    socket.write(LIVE);
    return socket.destroyed;
  }, 'the end of the connection');
});

describe('P23 the body of a request behind a response that closes the connection', () => {
  const received: IncomingMessage[] = [];
  let socket: Socket;

  beforeEach(async () => {
    received.length = 0;
    server.on('request', note);
    socket = await opened();
    socket.on('error', () => undefined).resume();
    socket.write(STREAM + get('/livez', 'a:\r\n'.repeat(200)));
    await until(() => received.length === 2, 'the response that closes the connection');
    socket.write('POST /token HTTP/1.1\r\nHost: shop\r\nTransfer-Encoding: chunked\r\n\r\n');
  });

  afterEach(() => void server.off('request', note));

  test('P23 is not kept', async () => {
    socket.write(`${'1\r\nx\r\n'.repeat(1_000)}0\r\n\r\n`);
    await until(() => received[2]?.complete === true, 'the body');
    expect(received.map(({ readableLength }) => readableLength)).toEqual([0, 0, 0]);
  });

  test('P23 ends the connection when it has more than 1 MB', async () => {
    const piece = `3e8\r\n${'x'.repeat(1_000)}\r\n`.repeat(100);
    await until(() => {
      if (socket.writableLength === 0) socket.write(piece);
      return socket.destroyed;
    }, 'the end of the connection');
  });

  function note(req: IncomingMessage): void {
    received.push(req);
  }
});

test('P23 requests with an unknown expectation wait in the same queue as others', async () => {
  const socket = await opened();
  socket.on('error', () => undefined).resume();
  socket.write(STREAM + get('/livez', 'Expect: x\r\n').repeat(100));
  await closed(socket);
  expect(await listeners()).toBe(0);
});

test('H12 a response that its client reads slowly is sent whole while the server is draining', async () => {
  const whole = 'x'.repeat(30_000_000);
  const other = createHttpServer(shop.config, (_req, res) => void res.end(whole));
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const socket = connect(portOf(other), '127.0.0.1');
  socket.write(LIVE);
  await once(socket, 'readable');
  const drain = await stopListening(other);
  const drained = drain();
  // For longer than clients may take to send their next request.
  await setTimeout(2 * GRACE_MS);
  let length = 0;
  socket.on('data', (piece: Buffer) => (length += piece.length));
  await Promise.all([drained, closed(socket)]);
  expect(length).toBeGreaterThan(whole.length);
});

describe('H12 of two requests that were received together', () => {
  const responses: ServerResponse[] = [];
  let arrived: PromiseWithResolvers<void>;
  let other: Server;
  let socket: Socket;
  let answer: string;
  let gone: Promise<void>;

  beforeEach(async () => {
    responses.length = 0;
    arrived = Promise.withResolvers();
    other = createHttpServer(shop.config, (_req, res) => {
      if (!res.socket) mayQueue(res);
      if (responses.push(res) === 2) arrived.resolve();
    });
    // The server must not close the connection because it is idle.
    other.keepAliveTimeout = other.timeout = 600_000;
    other.listen(0, '127.0.0.1');
    await once(other, 'listening');
    socket = connect(portOf(other), '127.0.0.1');
    answer = '';
    socket.on('data', (piece: Buffer) => (answer += piece.toString()));
    gone = closed(socket);
    socket.write(LIVE + LIVE);
    await arrived.promise;
  });

  afterEach(() => {
    other.closeAllConnections();
    other.close();
  });

  test('H12 the second is the last that is executed where the first closes the connection', async () => {
    expect(responses.slice(0, 1).map(closeAfterLast)).toEqual([false]);
    socket.write(LIVE);
    await once(other, 'request');
    for (const res of responses) res.end('whole');
    await gone;
    expect([statuses(answer), responses.length]).toEqual([[200, 200], 2]);
  });

  test('H12 the second ends the connection where a third took too long to arrive', async () => {
    socket.write(LIVE.slice(0, -2));
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    other.emit('clientError', late, responses[0]?.req.socket);
    socket.write(LIVE.slice(-2));
    await once(other, 'request');
    for (const res of responses) res.end('whole');
    await gone;
    expect([statuses(answer), responses.length]).toEqual([[200, 200], 2]);
  });

  test('H12 the second ends the connection where its response had been written before', async () => {
    responses[1]?.end('whole');
    expect(responses.slice(0, 1).map(closeAfterLast)).toEqual([false]);
    responses[0]?.end('whole');
    await gone;
    expect(statuses(answer)).toEqual([200, 200]);
  });

  test('H12 the second ends the connection after the first where it cannot be completed, and a third is not executed', async () => {
    responses[1]?.write('half');
    for (const res of responses.slice(1)) breakOff(res);
    socket.write(LIVE);
    await once(other, 'request');
    responses[0]?.end('whole');
    await gone;
    expect([answer.endsWith('whole'), responses.length]).toEqual([true, 2]);
  });

  test('H12 no body is asked for where a third is not executed (RFC 9110, 10.1.1)', async () => {
    socket.write('POST / HTTP/1.1\r\nHost: shop\r\nContent-Length: 1\r\n');
    const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
    other.emit('clientError', late, responses[0]?.req.socket);
    socket.write('Expect: 100-continue\r\n\r\n');
    await once(other, 'request');
    for (const res of responses) res.end('whole');
    await gone;
    expect(statuses(answer)).toEqual([200, 200]);
  });
});

test('P23 packets behind what is no HTTP add nothing to the connection, though its client reads nothing', async () => {
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

test('H12 what waits in front of a CONNECT is over when the connection is', async () => {
  const socket = await opened();
  socket.on('error', () => undefined);
  socket.write(`${get('/api/v1/shop/products') + STREAM.repeat(60)}CONNECT shop:443 HTTP/1.1\r\nHost: shop\r\n\r\n`);
  await closed(socket.resume());
  expect(await listeners()).toBe(0);
});

test.each([
  ['one that would be refused', get('/graphql', `Host: other\r\n${UPGRADE}`)],
  ['a good one', get('/graphql', UPGRADE)],
])('H12 an upgrade behind a request that is not answered yet is none: %s', async (_what, request) => {
  // Of one packet, Node reads nothing behind it.
  const answer = await spoken(PAGE + request);
  expect(statuses(answer)).toEqual([200, 400]);
});

test('H9 who is refused a WebSocket and stays is closed all the same', async () => {
  const socket = connect({ port: portOf(server), host: '127.0.0.1', allowHalfOpen: true });
  sockets.add(socket);
  socket.write(get('/graphql', `Host: other\r\n${UPGRADE}`));
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(statuses(answer.toString())).toEqual([400]);
  await until(async () => (await connections()) === 0, 'the end of the connection');
  expect(socket.writable).toBe(true);
});

/** Sends this, and returns what comes back until the server ends the connection. */
async function spoken(text: string): Promise<string> {
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

/** Waits for the end of a socket, whether it ends well or not. */
function closed(socket: Socket): Promise<void> {
  return new Promise((done) => void socket.once('close', () => done()));
}

async function listeners(): Promise<number> {
  const { values: [{ value } = { value: -1 }] = [] } = (await register.getSingleMetric('shopfront_listeners')?.get()) ?? {};
  return value;
}

function urlOf(of: Server): string {
  return `http://127.0.0.1:${portOf(of)}`;
}

function portOf(of: Server): number {
  return (of.address() as AddressInfo).port;
}

function connections(): Promise<number> {
  return new Promise((done, fail) => void server.getConnections((error, count) => (error ? fail(error) : done(count))));
}

function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
