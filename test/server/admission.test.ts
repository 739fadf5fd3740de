import 'reflect-metadata';
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '../support/jest.ts';
import { readConfig } from '../../src/core/config.ts';
import { EXPOSED } from '../../src/http/common-headers.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { inFlight } from '../../src/http/in-flight.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { admission } from '../../src/http/admission.ts';
import type { Services } from '../../src/http/dependencies.ts';
import { until } from '../support/until.ts';

// The admission of requests, in front of a listener that reads their bodies and answers when the test says so.

const MAX = 100;
/** Maximum number of requests in progress (request-queue.ts). */
const MAX_RUNNING = 128;
const MESSAGE = 'The service is not available at the moment';

const GET = 'GET / HTTP/1.1\r\nHost: shop\r\n\r\n';
const head = (path = '/', headers = 'Content-Length: 2\r\n') => `POST ${path} HTTP/1.1\r\nHost: shop\r\n${headers}\r\n`;

let server: Server;
const sockets = new Set<Socket>();
/** Those that have been received. */
const working: ServerResponse[] = [];
let isHeld = false;

beforeAll(async () => {
  const config = readConfig({}, () => '');
  const services = { config, log: openLog({ logLevel: 'silent' }), observe: () => undefined, isDraining: () => false };
  const listener = admission(services as unknown as Services, (req, res) => {
    req.resume().once('end', () => {
      if (isHeld) working.push(res);
      else res.end();
    });
  });
  server = createHttpServer(config, listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

beforeEach(() => {
  inFlight.max = MAX;
  isHeld = false;
});

afterEach(async () => {
  for (const res of working.splice(0)) res.end();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await until(() => inFlight.size === 0, 'the end of all requests');
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
  inFlight.max = Infinity;
});

test('H9 bodies that never come keep out nobody but those whose body has not come either', async () => {
  await Promise.all(Array.from({ length: MAX }, () => sent(head())));
  await until(() => inFlight.size === MAX, 'the heads');
  expect(statusOf(await answered(GET))).toBe(200);
  expect(statusOf(await answered(`${head()}{}`))).toBe(200);
  expect(statusOf(await answered(head()))).toBe(503);
  for (const socket of [...sockets].slice(0, 2)) socket.destroy();
  await until(() => inFlight.size < MAX, 'the end of two');
  const late = await sent(head());
  await until(() => inFlight.size === MAX - 1, 'its head');
  expect(statusOf(await answered('{}', late))).toBe(200);
});

test('H9 a GET whose body never comes is counted as in progress, as it does not wait for it', async () => {
  inFlight.max = 2;
  for (let count = 0; count < 2; count++) await sent(GET.replace('\r\n\r\n', '\r\nContent-Length: 2\r\n\r\n'));
  await until(() => inFlight.size === 2, 'the heads');
  expect(statusOf(await answered(GET))).toBe(503);
});

test('a request whose body comes in a packet of its own is counted like any other', async () => {
  inFlight.max = 10 * MAX;
  isHeld = true;
  const late = await Promise.all(Array.from({ length: MAX_RUNNING }, () => sent(head())));
  await until(() => inFlight.size === MAX_RUNNING, 'the heads');
  for (const socket of late) socket.write('{}');
  await until(() => working.length === MAX_RUNNING, 'the bodies');
  for (let more = 0; more < 10; more++) await sent(GET);
  await until(() => inFlight.size === MAX_RUNNING + 10, 'ten more');
  expect(await isStill(() => working.length)).toBe(MAX_RUNNING);
  for (const res of working.splice(0, 10)) res.end();
  await until(() => working.length === MAX_RUNNING, 'their turn');
});

describe('a request that is rejected', () => {
  beforeEach(() => {
    inFlight.max = 0;
  });

  test.each([
    ['/session/login', { data: MESSAGE }],
    ['/session/logout/', { data: MESSAGE }],
    ['/api/v2/auth/login', { data: MESSAGE }],
    ['/api/v2/auth/login?username=ada', { data: MESSAGE }],
    ['/session', { detail: MESSAGE }],
    ['/sessions', { detail: MESSAGE }],
    ['/token', { detail: MESSAGE }],
    ['/graphql', { errors: [{ message: MESSAGE, extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }] }],
  ])('is told so in the words of its path, and pages of other origins may read when to come again: %s', async (path, body) => {
    const answer = await fetch(urlOf() + path, { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.get('Access-Control-Expose-Headers')]).toEqual([503, EXPOSED]);
    expect(await answer.json()).toEqual(body);
  });

  test('is not read for long to learn what it accepts', async () => {
    const accepting = async (accept: string) =>
      (await fetch(`${urlOf()}/graphql`, { headers: { Accept: accept } })).headers.get('Content-Type')?.split(';')[0];
    const type = 'application/graphql-response+json';
    expect(await accepting(`${type}, ${'x/y, '.repeat(50)}x/z`)).toBe(type);
    expect(await accepting(`${type}, ${'x/y, '.repeat(100)}x/z`)).toBe('application/json');
  });

  test.each([
    ['in chunks', 'Transfer-Encoding: chunked\r\n', `${(60 * 1024).toString(16)}\r\n${'x'.repeat(60 * 1024)}\r\n0\r\n\r\n`],
    ['with its length', `Content-Length: ${60 * 1024}\r\n`, 'x'.repeat(60 * 1024)],
  ])('reads why, whatever it still has to send: %s', async (_how, framing, body) => {
    const socket = await sent(head('/', framing));
    const ends: string[] = [];
    for (const event of ['error', 'end', 'close']) socket.on(event, () => ends.push(event));
    const [piece] = (await once(socket, 'data')) as [Buffer];
    expect(statusOf(piece.toString())).toBe(503);
    for (let at = 0; at < body.length; at += 8 * 1024) {
      await new Promise((done) => setTimeout(done, 5));
      expect(ends).toEqual([]);
      socket.write(body.slice(at, at + 8 * 1024));
    }
    expect(await isStill(() => ends)).not.toContain('error');
    expect(/Connection: close/.test(piece.toString())).toBe(framing.startsWith('Transfer'));
  });

  test('in chunks without end is cut off', async () => {
    const socket = await sent(head('/', 'Transfer-Encoding: chunked\r\n'));
    const closed = new Promise((done) => socket.once('close', done));
    socket.on('error', () => undefined).resume();
    const piece = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const sending = setInterval(() => socket.write(piece), 5);
    await closed;
    clearInterval(sending);
  });
});

/** Sends this on a connection of its own. */
async function sent(text: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.add(socket);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Sends this, and returns the first of what comes back. */
async function answered(text: string, socket?: Socket): Promise<string> {
  const used = socket ?? (await sent(''));
  used.write(text);
  const [piece] = (await once(used, 'data')) as [Buffer];
  return piece.toString();
}

/** Returns the value, which stays as it is for a while. */
async function isStill<T>(value: () => T): Promise<T> {
  await new Promise((done) => setTimeout(done, 100));
  return value();
}

function urlOf(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function statusOf(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
}
