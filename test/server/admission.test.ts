import 'reflect-metadata';
import { once } from 'node:events';
import type { Server, ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  test,
} from '../support/jest.ts';
import { readConfig } from '../../src/core/config.ts';
import { EXPOSED_HEADERS } from '../../src/http/common-headers.ts';
import { createHttpServer } from '../../src/http/http-server.ts';
import { inFlight } from '../../src/http/in-flight.ts';
import { openLog } from '../../src/telemetry/log.ts';
import { admission } from '../../src/http/admission.ts';
import type { Dependencies } from '../../src/http/dependencies.ts';
import { until } from '../support/until.ts';

// Admission in front of a handler that reads bodies and responds when the test lets it.

const MAX = 100;
/** Maximum number of requests in progress (request-queue.ts). */
const MAX_RUNNING = 128;
const MESSAGE = 'The service is not available at the moment';

const GET = 'GET / HTTP/1.1\r\nHost: shop\r\n\r\n';
const head = (path = '/', headers = 'Content-Length: 2\r\n') =>
  `POST ${path} HTTP/1.1\r\nHost: shop\r\n${headers}\r\n`;

let server: Server;
const sockets = new Set<Socket>();
/** Responses to received requests, not sent yet. */
const pending: ServerResponse[] = [];
let isPaused = false;

beforeAll(async () => {
  const config = readConfig({}, () => '');
  const services = {
    config,
    log: openLog({ logLevel: 'silent' }),
    observe: () => undefined,
    isDraining: () => false,
  };
  const handler = admission(services as unknown as Dependencies, (req, res) => {
    req.resume().once('end', () => {
      if (isPaused) pending.push(res);
      else res.end();
    });
  });
  server = createHttpServer(config, handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
});

beforeEach(() => {
  inFlight.max = MAX;
  isPaused = false;
});

afterEach(async () => {
  for (const res of pending.splice(0)) res.end();
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await until(() => inFlight.size === 0, 'the end of all requests');
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
  inFlight.max = Infinity;
});

test('H9 bodies that never arrive block only other requests without their bodies', async () => {
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

test('H9 a GET counts as in progress although its body never arrives', async () => {
  inFlight.max = 2;
  for (let count = 0; count < 2; count++)
    await sent(GET.replace('\r\n\r\n', '\r\nContent-Length: 2\r\n\r\n'));
  await until(() => inFlight.size === 2, 'the heads');
  expect(statusOf(await answered(GET))).toBe(503);
});

test('a request whose body arrives in a separate packet counts like any other', async () => {
  inFlight.max = 10 * MAX;
  isPaused = true;
  const late = await Promise.all(Array.from({ length: MAX_RUNNING }, () => sent(head())));
  await until(() => inFlight.size === MAX_RUNNING, 'the heads');
  for (const socket of late) socket.write('{}');
  await until(() => pending.length === MAX_RUNNING, 'the bodies');
  for (let more = 0; more < 10; more++) await sent(GET);
  await until(() => inFlight.size === MAX_RUNNING + 10, 'ten more');
  expect(await laterValue(() => pending.length)).toBe(MAX_RUNNING);
  for (const res of pending.splice(0, 10)) res.end();
  await until(() => pending.length === MAX_RUNNING, 'the start of ten queued requests');
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
    [
      '/graphql',
      { errors: [{ message: MESSAGE, extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }] },
    ],
  ])(
    'has the error format of its path, and Retry-After is readable across origins: %s',
    async (path, body) => {
      const answer = await fetch(urlOf() + path, { method: 'POST', body: '{}' });
      expect([answer.status, answer.headers.get('Access-Control-Expose-Headers')]).toEqual([
        503,
        EXPOSED_HEADERS,
      ]);
      expect(await answer.json()).toEqual(body);
    },
  );

  test('is classified by a limited length of its Accept header', async () => {
    const accepting = async (accept: string) =>
      (await fetch(`${urlOf()}/graphql`, { headers: { Accept: accept } })).headers
        .get('Content-Type')
        ?.split(';')[0];
    const type = 'application/graphql-response+json';
    expect(await accepting(`${type}, ${'x/y, '.repeat(50)}x/z`)).toBe(type);
    expect(await accepting(`${type}, ${'x/y, '.repeat(100)}x/z`)).toBe('application/json');
  });

  test.each([
    [
      'in chunks',
      'Transfer-Encoding: chunked\r\n',
      `${(60 * 1024).toString(16)}\r\n${'x'.repeat(60 * 1024)}\r\n0\r\n\r\n`,
    ],
    ['with its length', `Content-Length: ${60 * 1024}\r\n`, 'x'.repeat(60 * 1024)],
  ])('receives its response while it still sends its body: %s', async (_how, framing, body) => {
    const socket = await sent(head('/', framing));
    const ends: string[] = [];
    for (const event of ['error', 'end', 'close']) socket.on(event, () => ends.push(event));
    const [chunk] = (await once(socket, 'data')) as [Buffer];
    expect(statusOf(chunk.toString())).toBe(503);
    for (let at = 0; at < body.length; at += 8 * 1024) {
      await new Promise((done) => setTimeout(done, 5));
      expect(ends).toEqual([]);
      socket.write(body.slice(at, at + 8 * 1024));
    }
    expect(await laterValue(() => ends)).not.toContain('error');
    expect(/Connection: close/.test(chunk.toString())).toBe(framing.startsWith('Transfer'));
  });

  test('in endless chunks is disconnected', async () => {
    const socket = await sent(head('/', 'Transfer-Encoding: chunked\r\n'));
    const closed = new Promise((done) => socket.once('close', done));
    socket.on('error', () => undefined).resume();
    const chunk = `8000\r\n${'x'.repeat(0x8000)}\r\n`;
    const sending = setInterval(() => socket.write(chunk), 5);
    await closed;
    clearInterval(sending);
  });
});

/** Sends the text on a new connection. */
async function sent(text: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.add(socket);
  await once(socket, 'connect');
  socket.write(text);
  return socket;
}

/** Sends the text and returns the first chunk of the response. */
async function answered(text: string, socket?: Socket): Promise<string> {
  const used = socket ?? (await sent(''));
  used.write(text);
  const [chunk] = (await once(used, 'data')) as [Buffer];
  return chunk.toString();
}

/** Returns the value after a short wait. */
async function laterValue<T>(value: () => T): Promise<T> {
  await new Promise((done) => setTimeout(done, 100));
  return value();
}

function urlOf(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function statusOf(text: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1]);
}
