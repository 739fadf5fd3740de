import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { freePort, startServer, stopServer } from '../support/process.ts';

test('pending traces are exported when the server exits', async () => {
  const received: string[] = [];
  const collector = createServer(async (req, res) => {
    received.push(await text(req));
    res.end('{}');
  });
  await once(collector.listen(0, '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/`;
  await withDataDir(async (DATA_DIR) => {
    const env = {
      DATA_DIR,
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_SERVICE_NAME: 'a shop',
      OTEL_BSP_SCHEDULE_DELAY: '600000',
    };
    const server = await startServer({ ...env });
    const id = (await fetch(`${server.url}/api/v2/shop/products`)).headers.get('x-request-id');
    expect(received).toEqual([]);
    expect(await stopServer(server)).toMatchObject({ code: 0, stderr: '' });
    expect(
      received.filter((body) => body.includes(String(id)) && body.includes('"a shop"')),
    ).toHaveLength(1);
  });
  collector.close();
});

test('an unreachable collector delays neither responses nor the exit', async () => {
  await withDataDir(async (DATA_DIR) => {
    const OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${await freePort()}`;
    const server = await startServer({ DATA_DIR, OTEL_EXPORTER_OTLP_ENDPOINT });
    expect((await fetch(`${server.url}/api/v2/shop/products`)).status).toBe(200);
    expect((await stopServer(server)).code).toBe(0);
  });
});
