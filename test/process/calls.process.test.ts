import { expect, test } from '../support/jest.ts';
import { command } from '../support/command.ts';
import { withDataDir } from '../support/directories.ts';
import {
  untilResponding,
  freePort,
  launch,
  databaseProcessOf,
  startServer,
  stopServer,
} from '../support/process.ts';

test('calls are in the report after SIGTERM, and the next process adds to them', async () => {
  await withDataDir(async (DATA_DIR) => {
    for (let start = 0; start < 2; start++) {
      const server = await startServer({ DATA_DIR });
      await fetch(`${server.url}/api/v1/shop/product/1`, { headers: { 'User-Agent': 'till' } });
      expect(await stopServer(server)).toMatchObject({ code: 0, stderr: '' });
    }
    const { stdout } = await command(['rest-usage', 'report'], { DATA_DIR });
    expect(stdout).toMatch(/^2 .* GET \/api\/v1\/shop\/product\/\{pk\} {2}- {2}till\n$/);
  });
});

test('calls during a database outage are counted, and stored afterwards', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    process.kill(await databaseProcessOf(DATA_DIR), 'SIGKILL');
    for (let call = 0; call < 5; call++) await fetch(`${server.url}/api/v1/shop/product/1`);
    while ((await fetch(`${server.url}/readyz`)).status !== 200)
      await new Promise((done) => void setTimeout(done, 20));
    await stopServer(server);
    const { stdout } = await command(['rest-usage', 'report'], { DATA_DIR });
    expect(stdout).toMatch(/^5 .*\n$/);
  });
});

test('a process that exits without a database connection logs the number of lost calls', async () => {
  const port = await freePort();
  const { child, ended } = launch('main.js', [], {
    DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/nothing',
    SIGNING_SECRET: 'only-for-tests-only-for-tests-only',
    HOST: '127.0.0.1',
    PORT: String(port),
    LOG_LEVEL: 'error',
  });
  const url = `http://127.0.0.1:${port}`;
  await untilResponding(`${url}/livez`);
  for (let call = 0; call < 3; call++) {
    const answer = await fetch(`${url}/api/v2/shop/products`);
    expect([answer.status, await answer.json()]).toEqual([
      503,
      { detail: 'The service is starting, which takes a few seconds' },
    ]);
  }
  child.kill('SIGTERM');
  const { code, stderr } = await ended;
  expect(code).toBe(0);
  expect(JSON.parse(stderr)).toMatchObject({
    level: 50,
    calls: 3,
    msg: 'REST calls could not be stored and are lost',
  });
});
