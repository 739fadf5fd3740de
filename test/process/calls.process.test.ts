import { expect, test } from '../support/jest.ts';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { command } from '../support/command.ts';
import { withDataDir } from '../support/directories.ts';
import { answering, freePort, launch, startServer, stopServer } from '../support/process.ts';

test('what was called is in the report after SIGTERM, and is added to by the next process', async () => {
  await withDataDir(async (DATA_DIR) => {
    for (let start = 0; start < 2; start++) {
      const server = await startServer({ DATA_DIR });
      await fetch(`${server.url}/api/v1/shop/product/1`, { headers: { 'User-Agent': 'till' } });
      expect(await stopServer(server)).toMatchObject({ code: 0, stderr: '' });
    }
    const { stdout } = await command(['legacy', 'report', '--json'], { DATA_DIR });
    expect(JSON.parse(stdout)).toMatchObject({
      lines: [{ row: 'GET /api/v1/shop/product/{pk}', client: 'till', subject: null, calls: 2 }],
      total: { lines: 1, calls: 2 },
    });
  });
});

test('what was called is in the report within seconds, while the process runs', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    await fetch(`${server.url}/api/v1/shop/product/1`);
    let stdout = '';
    while (!stdout.includes('Calls in all: 1.')) ({ stdout } = await command(['legacy', 'report'], { DATA_DIR }));
    await stopServer(server);
    expect(stdout).toContain('GET /api/v1/shop/product/{pk}');
  });
});

test('calls while the database is away are counted, and stored when it is back', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    const { child } = JSON.parse(await readFile(join(DATA_DIR, 'lock'), 'utf8')) as { child: { pid: number } };
    process.kill(child.pid, 'SIGKILL');
    for (let call = 0; call < 5; call++) await fetch(`${server.url}/api/v1/shop/product/1`);
    while ((await fetch(`${server.url}/readyz`)).status !== 200) await new Promise((done) => void setTimeout(done, 20));
    await stopServer(server);
    const { stdout } = await command(['legacy', 'report', '--json'], { DATA_DIR });
    expect(JSON.parse(stdout)).toMatchObject({ total: { lines: 1, calls: 5 } });
  });
});

test('a process that ends without having reached its database says how many calls it has counted', async () => {
  const port = await freePort();
  const { child, ended } = launch('main.js', [], {
    DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/nothing',
    SIGNING_SECRET: 'only-for-tests-only-for-tests-only',
    HOST: '127.0.0.1',
    PORT: String(port),
    LOG_LEVEL: 'error',
  });
  const url = `http://127.0.0.1:${port}`;
  await answering(`${url}/livez`);
  for (let call = 0; call < 3; call++) expect((await fetch(`${url}/api/v2/shop/products`)).status).toBe(503);
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  expect(code).toBe(0);
  expect(JSON.parse(stderr)).toMatchObject({ level: 50, calls: 3, msg: 'calls of REST rows were counted, and could not be stored' });
});
