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
let socket: WebSocket;
let logged = '';

// At most one request may be in flight, and clients without pauses use that one.
beforeAll(async () => {
  const port = await freePort();
  metrics = `http://127.0.0.1:${port}/metrics`;
  directory = await makeDataDir();
  server = await startServer({
    MAX_REQUESTS_IN_FLIGHT: '1',
    METRICS_PORT: String(port),
    DATA_DIR: directory,
    LOG_LEVEL: 'warn',
  });
  server.child.stderr?.on('data', (piece: Buffer) => (logged += piece.toString()));
  socket = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, ['graphql-transport-ws']);
  await once(socket, 'open');
  socket.send('{"type":"connection_init"}');
  await once(socket, 'message');
  endLoad = keepBusy(server.url);
});

afterAll(async () => {
  await endLoad();
  socket.terminate();
  await stopServer(server);
  await removeDirectory(directory);
});

test('REST requests over the limit are rejected with 503, with the headers and body of the REST API', async () => {
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

test('GraphQL requests over the limit are rejected with 503 and a GraphQL error', async () => {
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/graphql-response+json',
  };
  const answer = await rejected('/graphql', {
    method: 'POST',
    headers,
    body: '{"query":"{ __typename }"}',
  });
  expect(answer.headers.get('Content-Type')).toBe(
    'application/graphql-response+json; charset=utf-8',
  );
  expect(await answer.json()).toEqual({
    errors: [
      {
        message: 'The service is not available at the moment',
        extensions: { code: 'UNAVAILABLE', retryAfter: 1 },
      },
    ],
  });
});

test('new WebSockets are rejected, and new subscriptions on open ones', async () => {
  await until(async () => (await statusOfUpgrade()) === 503, 'the rejection of a WebSocket');
  let id = 0;
  await until(async () => {
    socket.send(
      JSON.stringify({
        id: String(++id),
        type: 'subscribe',
        payload: { query: 'subscription { nothing }' },
      }),
    );
    const [message] = await once(socket, 'message');
    return JSON.parse(String(message)).payload[0].extensions.code === 'UNAVAILABLE';
  }, 'the rejection of a subscription');
});

test('preflights and health endpoints are served under overload', async () => {
  expect((await fetch(`${server.url}/api/v2/shop/products`, { method: 'OPTIONS' })).status).toBe(
    200,
  );
  expect((await fetch(`${server.url}/livez`)).status).toBe(200);
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
});

test('rejections are counted', async () => {
  const text = await (await fetch(metrics)).text();
  expect(Number(/^shopfront_overload_refusals_total (\d+)$/m.exec(text)?.[1])).toBeGreaterThan(2);
});

test('requests are served again after the overload', async () => {
  await endLoad();
  expect((await fetch(`${server.url}/api/v2/shop/products`)).status).toBe(200);
});

test('the log has the begin and the end of the overload', async () => {
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
  const other = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, [
    'graphql-transport-ws',
  ]);
  return new Promise((done) => {
    other.on('error', () => undefined);
    other.once('unexpected-response', (_req, { statusCode }) => done(statusCode));
    other.once('open', () => done(101));
  }).finally(() => other.terminate()) as Promise<number | undefined>;
}
