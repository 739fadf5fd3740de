import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import type { Request, Response } from 'express';
import { register } from 'prom-client';
import { Admission } from '../../src/http/admission.ts';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';
import { closeSockets, connectSocket } from '../support/sockets.ts';
import { until } from '../support/until.ts';

// Requests stay in progress until `release` sends their bodies.

const MAX = 140;
/** Maximum number of requests in progress (http/admission.ts). */
const MAX_RUNNING = 128;
/** Body of a login, which is 422 without a password. */
const BODY = 'username=ada';
const MESSAGE = 'The service is not available at the moment';

const shop = useShop({ MAX_REQUESTS_IN_FLIGHT: String(MAX) });
let release: () => void = () => undefined;

afterEach(() => release());

describe('while as many requests are in progress or wait as may', () => {
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
  ])('L4 another is 503 in the error format of its path: %s', async (path, body) => {
    const sent = await fill(MAX);
    const answer = await fetch(shop.url + path, { method: 'POST', body: '{}' });
    expect([answer.status, answer.headers.get('Retry-After')]).toEqual([503, '1']);
    expect(answer.headers.get('Access-Control-Expose-Headers')).toContain('Retry-After');
    expect(await answer.json()).toEqual(body);
    await expectServed(sent);
  });

  test('L4 health checks, preflights and the end of a request are served', async () => {
    const sent = await fill(MAX);
    for (const [method, path] of [
      ['GET', '/livez'],
      ['GET', '/readyz'],
      ['OPTIONS', '/token'],
    ] as const)
      expect((await shop.rest(method, path)).status).toBe(200);
    await expectServed(sent);
    expect((await shop.rest('GET', '/api/v2/shop/products')).status).toBe(200);
  });

  test('L4 rejected requests are counted', async () => {
    const sent = await fill(MAX);
    const before = await metric('shopfront_overload_refusals_total');
    for (let count = 0; count < 3; count++)
      expect((await shop.rest('GET', '/users/me/')).status).toBe(503);
    expect(await metric('shopfront_overload_refusals_total')).toBe(before + 3);
    await expectServed(sent);
  });

  test('L4 new WebSockets are rejected', async () => {
    const sent = await fill(MAX);
    await expect(connectSocket(shop)).rejects.toThrow('503');
    closeSockets();
    await expectServed(sent);
  });
});

test('requests wait while MAX_RUNNING are in progress, and start in the order of their arrival', async () => {
  const sent = await fill(MAX_RUNNING);
  const ended: number[] = [];
  const waiting: Promise<unknown>[] = [];
  for (let index = 0; index < 5; index++) {
    const answer = shop.rest('GET', '/users/me/');
    waiting.push(answer.then(() => ended.push(index)));
    await until(async () => (await inFlight()) === MAX_RUNNING + index + 1, 'its arrival');
  }
  expect(ended).toEqual([]);
  await expectServed(sent);
  await Promise.all(waiting);
  expect(ended).toHaveLength(5);
});

test('a client that disconnects while its request waits frees its place', async () => {
  const sent = await fill(MAX_RUNNING);
  const abort = new AbortController();
  const waiting = fetch(`${shop.url}/users/me/`, { signal: abort.signal });
  await until(async () => (await inFlight()) === MAX_RUNNING + 1, 'its arrival');
  abort.abort();
  await expect(waiting).rejects.toThrow('aborted');
  await until(async () => (await inFlight()) === MAX_RUNNING, 'its end');
  await expectServed(sent);
  expect(await inFlight()).toBe(0);
});

const HANDSHAKE = ['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'];

test.each([
  ['a WebSocket handshake', 'GET /graphql', HANDSHAKE],
  ['CONNECT', 'CONNECT shop:1', []],
])('requests before %s on their connection free their places', async (_name, last, more) => {
  const { hostname, port } = new URL(shop.url);
  const socket = connect(Number(port), hostname);
  const send = (line: string, ...headers: string[]) =>
    [`${line} HTTP/1.1`, `Host: ${hostname}`, ...headers, '', ''].join('\r\n');
  const stream = `/graphql?query=${encodeURIComponent('subscription { productChanged { pk } }')}`;
  const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
  socket.write(
    send(`GET ${stream}`, 'Accept: text/event-stream') +
      send('GET /users/me/').repeat(5) +
      send(last, ...more, key),
  );
  // CONNECT closes the connection at once.
  await (last.startsWith('GET')
    ? until(async () => (await inFlight()) >= 5, 'them')
    : once(socket, 'close'));
  socket.destroy();
  await until(async () => (await inFlight()) === 0, 'their end');
});

test('four requests start in a turn of the event loop, in which Node accepts one connection', async () => {
  // Last, because it replaces the metrics that the others read.
  const admission = new Admission(10, false);
  const started: number[] = [];
  const arrive = (id: number) =>
    admission.middleware({ method: 'GET' } as Request, { locals: {} } as Response, () =>
      started.push(id),
    );
  for (let id = 0; id < 6; id++) arrive(id);
  expect(started).toEqual([0, 1, 2, 3]);
  await setImmediate();
  for (let id = 6; id < 10; id++) arrive(id);
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  await setImmediate();
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

/** Sends this number of requests without their bodies, and waits until they are in progress. */
async function fill(count: number): Promise<Promise<number | undefined>[]> {
  const headers = {
    'Content-Type': 'application/x-www-form-urlencoded',
    'Content-Length': BODY.length,
  };
  const requests = Array.from({ length: count }, () => {
    const sending = request(`${shop.url}/token`, { method: 'POST', agent: false, headers });
    sending.flushHeaders();
    return sending;
  });
  release = () => {
    release = () => undefined;
    for (const sending of requests) sending.end(BODY);
  };
  const statuses = requests.map(async (sending) => {
    const [response] = (await once(sending, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  });
  await until(async () => (await inFlight()) === count, 'the requests');
  return statuses;
}

async function expectServed(sent: Promise<number | undefined>[]): Promise<void> {
  release();
  expect((await Promise.all(sent)).filter((status) => status !== 422)).toEqual([]);
}

function inFlight(): Promise<number> {
  return metric('shopfront_requests_in_flight');
}

async function metric(name: string): Promise<number> {
  const { values = [] } = (await register.getSingleMetric(name)?.get()) ?? {};
  return values[0]?.value ?? 0;
}
