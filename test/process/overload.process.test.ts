import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';
import { until } from '../support/until.ts';

let directory: string;
let server: RunningServer;
let metrics: string;
let held: Socket;
let listener: WebSocket;
let logged = '';

// One request that is never whole takes the only place that there is.
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
  held = connect(Number(new URL(server.url).port), '127.0.0.1');
  await once(held, 'connect');
  held.write('POST /graphql HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{');
  await until(async () => (await fetch(`${server.url}/users/me/`)).status === 503);
});

afterAll(async () => {
  held.destroy();
  listener.terminate();
  await stopServer(server);
  await removeDirectory(directory);
});

test('what is too much is refused in the words of REST', async () => {
  const answer = await fetch(`${server.url}/api/v2/shop/products`);
  expect(answer.status).toBe(503);
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
  const answer = await fetch(`${server.url}/graphql`, { method: 'POST', headers, body: '{"query":"{ __typename }"}' });
  expect(answer.status).toBe(503);
  expect(answer.headers.get('Content-Type')).toBe('application/graphql-response+json; charset=utf-8');
  expect(await answer.json()).toEqual({
    errors: [{ message: 'The service is not available at the moment', extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }],
  });
});

test('nobody new is let in to listen, and who is there begins nothing', async () => {
  const other = new WebSocket(`${server.url.replace('http', 'ws')}/graphql`, ['graphql-transport-ws']);
  const [, res] = await once(other, 'unexpected-response');
  expect((res as { statusCode: number }).statusCode).toBe(503);
  other.on('error', () => undefined).terminate();
  listener.send('{"id":"1","type":"subscribe","payload":{"query":"subscription { productChanged { pk } }"}}');
  const [message] = await once(listener, 'message');
  expect(JSON.parse(String(message))).toMatchObject({ id: '1', type: 'error', payload: [{ extensions: { code: 'UNAVAILABLE' } }] });
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
  held.destroy();
  await until(async () => (await fetch(`${server.url}/api/v2/shop/products`)).status !== 503);
  expect((await fetch(`${server.url}/api/v2/shop/products`)).status).toBe(200);
});

test('the log says when they began, and when they are over', async () => {
  await until(() => logged.includes('"overload.end"'), 'the end in the log');
  expect(logged.match(/overload\.\w+/g)).toEqual(['overload.begin', 'overload.end']);
});
