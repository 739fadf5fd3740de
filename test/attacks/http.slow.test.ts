import { readdirSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { createApp, type App } from '../../src/app.ts';
import { CallCounter } from '../../src/features/rest-usage/call-counter.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { openLog } from '../../src/telemetry/log.ts';
import type { Dependencies } from '../../src/http/dependencies.ts';
import { openConnections } from '../support/open-connections.ts';
import { Shop } from '../support/shop.ts';

/** Connections are closed after five more seconds without data. */
const shop = new Shop({ REQUEST_TIMEOUT_MS: '30000' });

const LIST = '/api/v1/shop/products';
/** Number of products: a list of about 12 MB, which exceeds the socket buffers of both sides. */
const PRODUCTS = 12_000;
const LONG_NAME = '🧀'.repeat(255);
const SLOW_CLIENTS = 2_000;

const POST = 'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n';
const GET = 'GET /livez HTTP/1.1\r\nHost: shop\r\n';

let app: App;
let server: Server;
let port: number;

/** The last data received by the stopped client, and all data received by the slow one. */
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
    ['headers sent byte by byte', `${GET}X-A: `, 'a'],
    ['headers sent line by line', GET, 'X-A: b\r\n'],
    ['incomplete headers', GET, ''],
    ['an incomplete request line', 'GE', ''],
    ['empty lines', '\r\n', '\r\n'],
    ['nothing at all', '', ''],
    ['headers of a second request sent byte by byte', `${GET}\r\n${GET}X-A: `, 'a'],
  ];
  const BODIES: [string, string, string][] = [
    ['a body sent byte by byte', `${POST}Content-Length: 10000\r\n\r\n{`, ' '],
    ['an incomplete body', `${POST}Content-Length: 10\r\n\r\n{}`, ''],
    ['a missing body', `${POST}Content-Length: 10\r\n\r\n`, ''],
    ['chunks sent byte by byte', `${POST}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
    ['chunks without the last one', `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n`, ''],
    [
      'an incomplete form',
      'POST /token HTTP/1.1\r\nHost: shop\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\na=',
      '',
    ],
    [
      'an incomplete query',
      'POST /graphql HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{',
      '',
    ],
    [
      'a missing body after 100 Continue',
      `${POST}Expect: 100-continue\r\nContent-Length: 10\r\n\r\n`,
      '',
    ],
  ];
  const IDLE = 'an idle connection';
  const UNREAD = 'malformed HTTP, sent byte by byte by a client that never reads';
  let readers: { result: Promise<Readers> };

  // All run concurrently, and each test checks one.
  beforeAll(async () => {
    readers = await beginReading();
    readers.result.catch(() => undefined);
    for (const [what, begin, more] of [...HEADERS, ...BODIES])
      conversations.set(what, converse(begin, more));
    conversations.set(IDLE, converse(`${GET}\r\n`, ''));
    const asset = GET.replace('/livez', `/assets/${largestAsset()}`);
    const broken = `${`${asset}\r\n`.repeat(5)}hello\r\n\r\n`;
    conversations.set(
      UNREAD,
      converse(broken, 'x', (socket) => socket.pause()),
    );
  });

  test('H9 an idle connection is closed without a response', async () => {
    const answer = await ended(IDLE);
    expect(statuses(answer)).toEqual([200]);
    expect(answer.endsWith('{"status":"ok"}')).toBe(true);
  });

  test.each(HEADERS)('H9 %s: 408, and the server closes the connection', async (what, begin) => {
    const answer = await ended(what);
    expect(statuses(answer)).toEqual(begin.includes('\r\n\r\n') ? [200, 408] : [408]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
  });

  test.each(BODIES)('H9 %s: 408, and the server closes the connection', async (what, begin) => {
    const answer = await ended(what);
    expect(statuses(answer)).toEqual(begin.includes('Expect') ? [100, 408] : [408]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
  });

  test(`H9 ${UNREAD}: the server closes the connection`, async () => {
    expect(await ended(UNREAD)).toBe('');
  });

  test('H9 idle connections, slow headers, slow bodies and the socket have increasing timeouts', () => {
    expect(server.keepAliveTimeout).toBeLessThan(server.headersTimeout);
    expect(server.headersTimeout).toBeLessThan(server.requestTimeout);
    expect(server.requestTimeout).toBeLessThan(server.timeout);
  });

  test('H9 slow clients leave no session and do not delay other clients', async () => {
    await Promise.all(conversations.values());
    expect(await shop.sql('select * from session')).toEqual([]);
    expect((await shop.rest('GET', '/readyz')).status).toBe(200);
  });

  test('H9 a client that stops reading the whole list is disconnected; a slow one gets all of it', async () => {
    const { stopped, slow } = await readers.result;
    expect(stopped.length).toBeGreaterThan(0);
    expect(stopped).not.toMatch(/\]\r\n0\r\n\r\n$/);
    expect((JSON.parse(slow) as unknown[]).length).toBe(PRODUCTS);
  });

  async function ended(what: string): Promise<string> {
    const end = await conversations.get(what);
    if (end === undefined) throw new Error(`no conversation for ${what}`);
    return end;
  }
});

test('H10 a GET is answered beside 2,000 clients with incomplete headers', async () => {
  const crowded = createHttpServer(shop.config, app.listener);
  const { headersTimeout } = crowded;
  // The slow clients stay connected until the GET requests have been answered.
  crowded.headersTimeout = crowded.requestTimeout = crowded.timeout = 600_000;
  crowded.listen(0, '127.0.0.1');
  await once(crowded, 'listening');
  const { port: own } = crowded.address() as AddressInfo;
  const get = async () =>
    (await fetch(`http://127.0.0.1:${own}/api/v2/shop/products?page=2`)).status;
  try {
    const sockets = await Promise.all(Array.from({ length: SLOW_CLIENTS }, () => slowClient(own)));
    // The server has accepted all of them.
    await until(async () => (await openConnections(crowded)) >= SLOW_CLIENTS);
    for (let time = 0; time < 60; time++) expect(await get()).toBe(200);
    expect(sockets.filter(({ socket }) => socket.destroyed)).toEqual([]);
    crowded.headersTimeout = headersTimeout;
    const ends = await Promise.all(sockets.map(({ end }) => end));
    expect(new Set(ends.map((answer) => answer.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 408']));
    expect(await openConnections(crowded)).toBeLessThan(SLOW_CLIENTS);
    expect(await get()).toBe(200);
  } finally {
    crowded.closeAllConnections();
    crowded.close();
  }
});

test('H10 connections beyond MAX_CONNECTIONS are closed immediately, and accepted after others have closed', async () => {
  const few = createHttpServer({ ...shop.config, maxConnections: 20 }, app.listener);
  few.listen(0, '127.0.0.1');
  await once(few, 'listening');
  const { port: own } = few.address() as AddressInfo;
  try {
    const accepted = await Promise.all(Array.from({ length: 20 }, () => opened(own)));
    await until(async () => (await openConnections(few)) === 20);
    let answer = '';
    const rejected = await opened(own);
    rejected.on('data', (piece: Buffer) => (answer += piece.toString()));
    rejected.write(`${GET}\r\n`);
    await closed(rejected);
    expect(answer).toBe('');
    for (const socket of accepted.slice(0, 2)) socket.destroy();
    await until(async () => (await openConnections(few)) < 20);
    expect(
      (await fetch(`http://127.0.0.1:${own}/livez`, { headers: { Connection: 'close' } })).status,
    ).toBe(200);
    for (const socket of accepted) socket.destroy();
  } finally {
    few.closeAllConnections();
    few.close();
  }
});

test('H10 the server has the configured limits, not the defaults of Node', () => {
  const plain = createServer();
  expect(server.maxConnections).toBe(shop.config.maxConnections);
  expect(shop.config.maxConnections).toBe(5_000);
  expect(server.headersTimeout).toBeLessThan(plain.headersTimeout);
  expect(server.requestTimeout).toBeLessThan(plain.requestTimeout);
});

function services(): Omit<Dependencies, 'config' | 'database'> {
  const log = openLog({ logLevel: 'silent' });
  return {
    log,
    calls: new CallCounter(),
    now: () => new Date(),
    observe: () => undefined,
    isDraining: () => false,
  };
}

/**
 * Requests the whole list with a client that never reads, and with one that reads slowly until
 * the server disconnects the first.
 */
async function beginReading(): Promise<{ result: Promise<Readers> }> {
  const accepted = once(server, 'connection') as Promise<[Socket]>;
  const reader = connect({ port, host: '127.0.0.1' }).on('error', () => undefined);
  reader.pause().write(`GET ${LIST} HTTP/1.1\r\nHost: shop\r\n\r\n`);
  const [served] = await accepted;
  const cutOff = closed(served);
  const slow = readSlowly(cutOff);
  const finish = async (): Promise<Readers> => {
    await cutOff;
    // The data in the socket buffers can still be read.
    let stopped = '';
    reader.on('data', (piece: Buffer) => (stopped = piece.toString('latin1'))).resume();
    await closed(reader);
    return { stopped, slow: await slow };
  };
  return { result: finish() };
}

/** Returns the name of the largest asset: five of them exceed the socket buffers of both sides. */
function largestAsset(): string {
  const sizes = readdirSync('dist/web/assets').map((name) => ({
    name,
    size: statSync(`dist/web/assets/${name}`).size,
  }));
  return sizes.toSorted((a, b) => b.size - a.size)[0]?.name ?? '';
}

/** Sends `begin`, then `more` repeatedly until the server closes. Returns the response. */
function converse(
  begin: string,
  more: string,
  prepare?: (socket: Socket) => void,
): Promise<string> {
  return new Promise((done) => {
    let answer = '';
    const socket = connect(
      port,
      '127.0.0.1',
      () => void (begin !== '' && socket.write(begin, 'latin1')),
    );
    const pace =
      more === ''
        ? undefined
        : setInterval(() => socket.writable && socket.write(more, 'latin1'), 400);
    socket.on('data', (piece: Buffer) => (answer += piece.toString('latin1')));
    prepare?.(socket);
    // The last bytes may be sent to a closed connection.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearInterval(pace);
      done(answer);
    });
  });
}

/** Reads the whole list: one chunk per second until `happened`, then without delay. */
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

/** Sends incomplete headers. `end` is the response. */
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

/** Waits until the socket is closed, with or without an error. */
function closed(socket: Socket): Promise<void> {
  return new Promise((done) => void socket.once('close', () => done()));
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((done) => void setImmediate(done));
}

function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
