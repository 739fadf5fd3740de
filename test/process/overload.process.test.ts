import { once } from 'node:events';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { keepBusy } from '../support/busy.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';
import { until } from '../support/until.ts';

let directory: string;
let server: RunningServer;
let metrics: string;
let endLoad: () => Promise<void>;
let listener: WebSocket;
let logged = '';

// There is one place, and clients that send their next request as soon as they have a response keep it taken.
beforeAll(async () => {
  const port = await freePort();
  metrics = `http://127.0.0.1:${port}/metrics`;
  directory = await makeDataDir();
  server = await startServer({ MAX_REQUESTS_IN_FLIGHT: '1', METRICS_PORT: String(port), DATA_DIR: directory, LOG_LEVEL: 'warn' });
  server.child.stderr?.on('data', (piece: Buffer) => (logged += piece.toString()));
  listener = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, ['graphql-transport-ws']);
  await once(listener, 'open');
  listener.send('{"type":"connection_init"}');
  await once(listener, 'message');
  endLoad = keepBusy(server.url);
});

afterAll(async () => {
  await endLoad();
  listener.terminate();
  await stopServer(server);
  await removeDirectory(directory);
});

test('what is too much is refused in the words of REST', async () => {
  const answer = await rejected('/api/v2/shop/products');
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'retry-after': '1',
    'content-type': 'application/json; charset=utf-8',
    'access-control-allow-origin': '*',
    'x-content-type-options': 'nosniff',
    'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
  });
  expect(await answer.json()).toEqual({ detail: 'The service is not available at the moment' });
});

test('and in those of GraphQL', async () => {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/graphql-response+json' };
  const answer = await rejected('/graphql', { method: 'POST', headers, body: '{"query":"{ __typename }"}' });
  expect(answer.headers.get('Content-Type')).toBe('application/graphql-response+json; charset=utf-8');
  expect(await answer.json()).toEqual({
    errors: [{ message: 'The service is not available at the moment', extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }],
  });
});

test('nobody new is let in to listen, and who is there begins nothing', async () => {
  await until(async () => (await statusOfUpgrade()) === 503, 'a refusal of a WebSocket');
  let id = 0;
  await until(async () => {
    listener.send(JSON.stringify({ id: String(++id), type: 'subscribe', payload: { query: 'subscription { nothing }' } }));
    const [message] = await once(listener, 'message');
    return JSON.parse(String(message)).payload[0].extensions.code === 'UNAVAILABLE';
  }, 'a refusal of a subscription');
});

test('preflights and the health endpoints are answered all the same', async () => {
  expect((await fetch(`${server.url}/api/v2/shop/products`, { method: 'OPTIONS' })).status).toBe(200);
  expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

test('refusals are counted', async () => {
  const text = await (await fetch(metrics)).text();
  expect(Number(/^shopfront_overload_refusals_total (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(2);
});

test('and end when there is room again', async () => {
  await endLoad();
  expect((await fetch(`${server.url}/api/v2/shop/products`)).status).toBe(200);
});

test('the log says when they began, and when they are over', async () => {
  await until(() => logged.includes('"overload.end"'), 'the end in the log');
  expect(logged.match(/overload\.\w+/g)).toEqual(['overload.begin', 'overload.end']);
});

/** Sends the request until it is rejected. */
async function rejected(path: string, request?: RequestInit): Promise<Response> {
  for (;;) {
    const answer = await fetch(server.url + path, request);
    if (answer.status === 503) return answer;
    await answer.text();
  }
}

/** Opens a WebSocket and closes it again. Returns the status of the response. */
function statusOfUpgrade(): Promise<number | undefined> {
  const other = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, ['graphql-transport-ws']);
  return new Promise((done) => {
    other.on('error', () => undefined);
    other.once('unexpected-response', (_req, { statusCode }) => done(statusCode));
    other.once('open', () => done(101));
  }).finally(() => other.terminate()) as Promise<number | undefined>;
}
