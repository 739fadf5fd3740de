import { readdirSync, statSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { createApp, type App } from '../../src/app.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import { GRACE_MS } from '../../src/graphql/subscriptions/connections.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { openLog } from '../../src/telemetry/log.ts';
import type { Services } from '../../src/http/dependencies.ts';
import { Shop } from '../support/shop.ts';

/** A connection on which nothing moves for five seconds longer is broken off. */
const shop = new Shop({ REQUEST_DEADLINE_MS: '30000' });

const LIST = '/api/v1/shop/products';
/** A list of some 12 MB: more than the sockets of both sides hold back together, so that the server has to wait for its reader. */
const PRODUCTS = 12_000;
const LONG_NAME = '🧀'.repeat(255);
const SLOW_CLIENTS = 2_000;

const POST = 'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n';
const GET = 'GET /livez HTTP/1.1\r\nHost: shop\r\n';

let app: App;
let server: Server;
let port: number;

/** The last that the one who stopped was given, and all that the slow one was. */
interface Readers {
  stopped: string;
  slow: string;
}

beforeAll(async () => {
  await shop.start();
  await shop.empty();
  const barcodes = Array.from({ length: PRODUCTS }, () => `'${shop.newBarcode()}'`).join();
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select '${LONG_NAME}', barcode, 1, now(), now() from unnest(array[${barcodes}]) as barcode`);
  const { config, database } = shop;
  app = await createApp({ ...services(), config, database: () => database });
  server = createHttpServer(config, app.listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});

afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await app.stop();
  await shop.stop();
});

describe('slow clients', () => {
  const conversations = new Map<string, Promise<string>>();
  const HEADERS: [string, string, string][] = [
    ['headers that come a letter at a time', `${GET}X-A: `, 'a'],
    ['headers that come a line at a time', GET, 'X-A: b\r\n'],
    ['headers that stop coming', GET, ''],
    ['a first line that stops coming', 'GE', ''],
    ['empty lines', '\r\n', '\r\n'],
    ['nothing at all', '', ''],
    ['headers of a second request that come a letter at a time', `${GET}\r\n${GET}X-A: `, 'a'],
  ];
  const BODIES: [string, string, string][] = [
    ['a body that comes a letter at a time', `${POST}Content-Length: 10000\r\n\r\n{`, ' '],
    ['a body that stops coming', `${POST}Content-Length: 10\r\n\r\n{}`, ''],
    ['a body that does not begin', `${POST}Content-Length: 10\r\n\r\n`, ''],
    ['chunks that come a letter at a time', `${POST}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
    ['chunks without an end', `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`, ''],
    [
      'a form that stops coming',
      'POST /token HTTP/1.1\r\nHost: shop\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\na=',
      '',
    ],
    [
      'a query that stops coming',
      'POST /graphql HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{',
      '',
    ],
    ['a body that was waited for', `${POST}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n`, ''],
  ];
  const IDLE = 'a connection that is kept and not used';
  const UNREAD = 'what is no HTTP, a letter at a time, from a client that reads nothing';
  let readers: { result: Promise<Readers> };

  // All at the same time, and looked at one by one.
  beforeAll(async () => {
    readers = await beginReading();
    readers.result.catch(() => undefined);
    for (const [what, begin, more] of [...HEADERS, ...BODIES]) conversations.set(what, converse(begin, more));
    conversations.set(IDLE, converse(`${GET}\r\n`, ''));
    const asset = GET.replace('/livez', `/assets/${largestAsset()}`);
    const broken = `${`${asset}\r\n`.repeat(5)}hello\r\n\r\n`;
    conversations.set(
      UNREAD,
      converse(broken, 'x', (socket) => socket.pause()),
    );
  });

  test('H9 a connection that is kept and not used is closed, without a word', async () => {
    const answer = await ended(IDLE);
    expect(statuses(answer)).toEqual([200]);
    expect(answer.endsWith('{"status":"ok"}')).toBe(true);
  });

  test.each(HEADERS)('H9 %s: 408, and the server ends the connection by itself', async (what, begin) => {
    const answer = await ended(what);
    expect(statuses(answer)).toEqual(begin.includes('\r\n\r\n') ? [200, 408] : [408]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
  });

  test.each(BODIES)('H9 %s: 408, and the server ends the connection by itself', async (what, begin) => {
    const answer = await ended(what);
    expect(statuses(answer)).toEqual(begin.includes('Expect') ? [100, 408] : [408]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
  });

  test(`H9 ${UNREAD}: the server ends the connection`, async () => {
    expect(await ended(UNREAD)).toBe('');
  });

  test('H9 what is idle goes first, then slow headers, then slow bodies: each has its own limit', () => {
    expect(server.keepAliveTimeout).toBeLessThan(server.headersTimeout);
    expect(server.headersTimeout).toBeLessThan(server.requestTimeout);
    expect(server.requestTimeout).toBeLessThan(server.timeout);
  });

  test('H9 none of them left a session, or keeps anybody else waiting', async () => {
    await Promise.all(conversations.values());
    expect(await shop.sql('select * from session')).toEqual([]);
    expect((await shop.rest('GET', '/readyz')).status).toBe(200);
  });

  test('H9 a reader of the whole list who stops is cut off, and gets no whole list; one who is slow but reads gets it', async () => {
    const { stopped, slow } = await readers.result;
    expect(stopped.length).toBeGreaterThan(0);
    expect(stopped).not.toMatch(/\]\r\n0\r\n\r\n$/);
    expect((JSON.parse(slow) as unknown[]).length).toBe(PRODUCTS);
  });

  async function ended(what: string): Promise<string> {
    const end = await conversations.get(what);
    if (end === undefined) throw new Error(`no conversation ${what}`);
    return end;
  }
});

test('H12 a stream of events that waits behind another response is not slow, and ends after it when it is sent away', async () => {
  const { config, database } = shop;
  const own = await createApp({ ...services(), config, database: () => database });
  let front: ServerResponse | undefined;
  const other = createHttpServer(config, (req, res) => {
    if (req.url === '/front') front = res;
    else own.listener(req, res);
  });
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  const socket = connect((other.address() as AddressInfo).port, '127.0.0.1');
  let answer = '';
  socket.on('data', (piece: Buffer) => (answer += piece.toString()));
  const stream = `GET /graphql?query=${encodeURIComponent('subscription { productChanged { pk } }')} HTTP/1.1\r\nHost: shop\r\n`;
  socket.write(`${GET.replace('/livez', '/front')}\r\n${stream}Accept: text/event-stream\r\n\r\n${GET}\r\n`);
  // Two of its signs of life.
  await setTimeout(25_000);
  own.sendAway();
  await setTimeout(GRACE_MS + 500);
  front?.end();
  await until(async () => statuses(answer).length === 3);
  expect(statuses(answer)).toEqual([200, 200, 200]);
  other.closeAllConnections();
  other.close();
  await own.stop();
});

test('H10 beside 2,000 clients that never end their headers, a GET is answered', async () => {
  const crowded = createHttpServer(shop.config, app.listener);
  const { headersTimeout } = crowded;
  // They are held until all that is asked beside them has been answered.
  crowded.headersTimeout = crowded.requestTimeout = crowded.timeout = 600_000;
  crowded.listen(0, '127.0.0.1');
  await once(crowded, 'listening');
  const { port: own } = crowded.address() as AddressInfo;
  const get = async () => (await fetch(`http://127.0.0.1:${own}/api/v2/shop/products?page=2`)).status;
  try {
    const sockets = await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => slowClient(own)));
    // As many as there are, the server has taken them all.
    await until(async () => (await connections(crowded)) >= SLOW_CLIENTS);
    for (let time = 0; time < 60; time++) expect(await get()).toBe(200);
    expect(sockets.filter(({ socket }) => socket.destroyed)).toEqual([]);
    crowded.headersTimeout = headersTimeout;
    const ends = await Promise.all(sockets.map(({ end }) => end));
    expect(new Set(ends.map((answer) => answer.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 408']));
    expect(await connections(crowded)).toBeLessThan(SLOW_CLIENTS);
    expect(await get()).toBe(200);
  } finally {
    crowded.closeAllConnections();
    crowded.close();
  }
});

test('H10 beyond MAX_CONNECTIONS a client is turned away at once, and let in when another has left', async () => {
  const few = createHttpServer({ ...shop.config, maxConnections: 20 }, app.listener);
  few.listen(0, '127.0.0.1');
  await once(few, 'listening');
  const { port: own } = few.address() as AddressInfo;
  try {
    const held = await Promise.all(Array.from({ length: 20 }, () => opened(own)));
    await until(async () => (await connections(few)) === 20);
    let answer = '';
    const refused = await opened(own);
    refused.on('data', (piece: Buffer) => (answer += piece.toString()));
    refused.write(`${GET}\r\n`);
    await closed(refused);
    expect(answer).toBe('');
    for (const socket of held.slice(0, 2)) socket.destroy();
    await until(async () => (await connections(few)) < 20);
    expect((await fetch(`http://127.0.0.1:${own}/livez`, { headers: { Connection: 'close' } })).status).toBe(200);
    for (const socket of held) socket.destroy();
  } finally {
    few.closeAllConnections();
    few.close();
  }
});

test('H10 the limits are those of the setting, and of no server that Node makes by itself', () => {
  const plain = createServer();
  expect(server.maxConnections).toBe(shop.config.maxConnections);
  expect(shop.config.maxConnections).toBe(5_000);
  expect(server.headersTimeout).toBeLessThan(plain.headersTimeout);
  expect(server.requestTimeout).toBeLessThan(plain.requestTimeout);
});

function services(): Omit<Services, 'config' | 'database'> {
  const log = openLog({ logLevel: 'silent' });
  return { log, calls: new CallCounter(), now: () => new Date(), observe: () => undefined, isDraining: () => false };
}

/** Begins to read the whole list with a socket that nobody reads, and slowly with another until the server has given up the first. */
async function beginReading(): Promise<{ result: Promise<Readers> }> {
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const reader = connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
  reader.pause().write(`GET ${LIST} HTTP/1.1\r\nHost: shop\r\n\r\n`);
  const [served] = await accepted;
  const cutOff = closed(served);
  const slow = readSlowly(cutOff);
  const finish = async (): Promise<Readers> => {
    await cutOff;
    // The rest of what was under way is still there to be read.
    let stopped = '';
    reader.on('data', (piece: Buffer) => (stopped = piece.toString('latin1'))).resume();
    await closed(reader);
    return { stopped, slow: await slow };
  };
  return { result: finish() };
}

/** Returns the name of the largest file of the pages: five of them are more than the sockets of both sides hold. */
function largestAsset(): string {
  const sizes = readdirSync('dist/web/assets').map((name) => ({ name, size: statSync(`dist/web/assets/${name}`).size }));
  return sizes.toSorted((a, b) => b.size - a.size)[0]?.name ?? '';
}

/** Says this, and then this again and again until the server ends the conversation. */
function converse(begin: string, more: string, prepare?: (socket: Socket) => void): Promise<string> {
  return new Promise((done) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => void (begin !== '' && socket.write(begin, 'latin1')));
    const pace = more === '' ? undefined : setInterval(() => socket.writable && socket.write(more, 'latin1'), 400);
    socket.on('data', (piece: Buffer) => (answer += piece.toString('latin1')));
    prepare?.(socket);
    // The last letters may meet a connection that is gone.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(pace);
      done(answer);
    });
  });
}

/** Reads the whole list, one piece a second until that has happened, and then as fast as it comes. */
async function readSlowly(happened: Promise<unknown>): Promise<string> {
  let isOver = false;
  void happened.then(() => (isOver = true));
  const { body } = await fetch(`http://127.0.0.1:${port}${LIST}`);
  if (!body) throw new Error('no body');
  const pieces: Uint8Array[] = [];
  for await (const piece of body) {
    pieces.push(piece);
    if (!isOver) await setTimeout(1_000);
  }
  return Buffer.concat(pieces).toString();
}

/** Begins its headers and stays; `end` is what it was told in the end. */
async function slowClient(to: number): Promise<{ socket: Socket; end: Promise<string> }> {
  const socket = await opened(to);
  let answer = '';
  socket.on('data', (piece: Buffer) => (answer += piece.toString('latin1')));
  socket.write(`${GET}X-A: b\r\n`);
  return { socket, end: closed(socket).then(() => answer) };
}

async function opened(to: number): Promise<Socket> {
  const socket = connect(to, '127.0.0.1');
  await once(socket, 'connect');
  return socket.on('error', () => undefined);
}

/** Waits for the end of a socket, whether it ends well or not. */
function closed(socket: Socket): Promise<void> {
  return new Promise((done) => void socket.once('close', () => done()));
}

function connections(of: Server = server): Promise<number> {
  return new Promise((done, fail) => void of.getConnections((error, count) => (error ? fail(error) : done(count))));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((done) => void setImmediate(done));
}

function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
