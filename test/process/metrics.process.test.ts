import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { join } from 'node:path';
import { VERSION } from '../../src/core/version.ts';
import { makeDataDir, removeDirectory } from '../support/directories.ts';
import { freePort, run, startServer, stopServer, type RunningServer } from '../support/process.ts';

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

  test('the metrics of the process and of its version are served', async () => {
    const scraped = await fetch(metrics);
    const lines = await scraped.text();
    expect([scraped.status, scraped.headers.get('content-type')]).toEqual([
      200,
      'text/plain; version=0.0.4; charset=utf-8',
    ]);
    expect(lines).toContain(`\nshopfront_build_info{version="${VERSION}"} 1\n`);
    expect(lines).toMatch(/^process_resident_memory_bytes \d+$/m);
  });

  test.each([
    ['GET', '', 200],
    ['HEAD', '', 200],
    ['GET', '/../api/v2/shop/products', 404],
    ['POST', '', 404],
  ])('%s /metrics%s returns %s', async (method, rest, status) => {
    expect((await fetch(metrics + rest, { method })).status).toBe(status);
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
