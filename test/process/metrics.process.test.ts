import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text as textOf } from 'node:stream/consumers';
import { VERSION } from '../../src/core/version.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { freePort, run, startServer, stopServer, type RunningServer } from '../support/process.ts';

const LOGIN = {
  method: 'POST',
  body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
};

describe('with METRICS_PORT', () => {
  let server: RunningServer;
  let dataDir: string;
  let metrics: string;

  beforeAll(async () => {
    dataDir = await makeDataDir();
    const METRICS_PORT = String(await freePort());
    metrics = `http://127.0.0.1:${METRICS_PORT}/metrics`;
    server = await startServer({ DATA_DIR: dataDir, METRICS_PORT });
  });

  afterAll(async () => {
    await stopServer(server);
    await removeDirectory(dataDir);
  });

  test('REST calls are counted at once by endpoint, client and user, beside the process metrics', async () => {
    for (const client of ['till', 'till', 'a "quoted" \\name']) {
      await fetch(`${server.url}/api/v2/shop/products`, { headers: { 'User-Agent': client } });
    }
    await fetch(`${server.url}/token`, { ...LOGIN, headers: { 'User-Agent': 'till' } });
    const scraped = await fetch(metrics);
    const lines = await scraped.text();
    expect([scraped.status, scraped.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    expect(
      lines.split('\n').filter((line) => line.startsWith('shopfront_rest_calls_total{')),
    ).toEqual([
      'shopfront_rest_calls_total{endpoint="GET /api/v2/shop/products",client="till",subject=""} 2',
      'shopfront_rest_calls_total{endpoint="GET /api/v2/shop/products",client="a \\"quoted\\" \\\\name",subject=""} 1',
      'shopfront_rest_calls_total{endpoint="POST /token",client="till",subject="alice"} 1',
    ]);
    expect(lines).toMatch(/^# TYPE shopfront_rest_calls_total counter$/m);
    expect(lines).toContain(`\nshopfront_build_info{version="${VERSION}"} 1\n`);
    expect(lines).toMatch(/^process_resident_memory_bytes \d+$/m);
  });

  test('scrapes change no counter', async () => {
    await fetch(`${server.url}/api/v2/shop/products`, { headers: { 'User-Agent': 'once' } });
    const once = await callsIn(metrics);
    expect(await callsIn(metrics)).toEqual(once);
    await fetch(`${server.url}/api/v2/shop/products`, { headers: { 'User-Agent': 'once more' } });
    const series =
      'shopfront_rest_calls_total{endpoint="GET /api/v2/shop/products",client="once more",subject=""} 1';
    expect((await callsIn(metrics)).toSorted()).toEqual([...once, series].toSorted());
  });

  test.each([
    ['GET', '', 200],
    ['GET', '?name[]=x', 200],
    ['HEAD', '', 200],
    ['GET', '/', 404],
    ['GET', '/../api/v2/shop/products', 404],
    ['POST', '', 405],
    ['OPTIONS', '', 405],
  ])('%s /metrics%s returns %s', async (method, rest, status) => {
    const answer = await fetch(metrics + rest, { method });
    expect(answer.status).toBe(status);
    expect((await answer.text()).length > 0).toBe(status === 200 && method === 'GET');
    expect(answer.headers.get('allow')).toBe(status === 405 ? 'GET, HEAD' : null);
  });

  test('H7 a request without Host returns 400', async () => {
    const socket = connect(Number(new URL(metrics).port), '127.0.0.1');
    socket.write('GET /metrics HTTP/1.1\r\n\r\n');
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 400 /);
  });

  test('the API port has no metrics, and the metrics port no API', async () => {
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404);
    expect((await fetch(metrics.replace('/metrics', '/api/v2/shop/products'))).status).toBe(404);
  });

  test('a start on a metrics port in use exits with 1 and one line', async () => {
    const METRICS_PORT = new URL(metrics).port;
    const second = await run('main.js', [], {
      DATA_DIR: join(dataDir, 'second'),
      PORT: '0',
      METRICS_PORT,
      LOG_LEVEL: 'silent',
    });
    expect(second).toEqual({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${METRICS_PORT}: .*\\n$`),
      ),
    });
  });
});

async function callsIn(metrics: string): Promise<string[]> {
  const text = await (await fetch(metrics)).text();
  return text.split('\n').filter((line) => line.startsWith('shopfront_rest_calls_total{'));
}
