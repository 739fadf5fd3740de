import { expect, test } from '../support/jest.ts';
import { connect } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { postForm } from '../support/post-form.ts';
import { withDataDir } from '../support/directories.ts';
import {
  untilResponding,
  freePort,
  launch,
  databaseProcessOf,
  startServer,
  stopServer,
  type RunningServer,
} from '../support/process.ts';
import { until } from '../support/until.ts';

const SECRET = 'only-for-tests-only-for-tests-only';

test('on SIGTERM the server completes requests in flight, accepts no new ones, and exits with 0', async () => {
  await withDataDir(async (DATA_DIR) => {
    // Hashing takes long enough to be in flight when the signal comes.
    const server = await startServer({ DATA_DIR, BCRYPT_COST: '12' });
    const logins = ['alice', 'bob', 'admin'].map((username) =>
      postForm(`${server.url}/token`, `username=${username}&password=${username}-demo-1`),
    );
    await Promise.all(logins.map(({ sent }) => sent));
    // Connections are accepted in order, so after this response the server has received the logins.
    await fetch(`${server.url}/livez`);
    const ended = stopServer(server);
    expect(await Promise.all(logins.map(({ status }) => status))).toEqual([200, 200, 200]);
    expect(await ended).toMatchObject({ code: 0 });
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow('fetch failed');
  });
});

test('a signal that npm sends twice counts once; a later second signal makes the process exit with 1', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, BCRYPT_COST: '12' });
    const login = postForm(`${server.url}/token`, 'username=alice&password=alice-demo-1');
    await login.sent;
    await fetch(`${server.url}/livez`);
    server.child.kill('SIGINT');
    const ended = stopServer(server, 'SIGINT');
    expect(await login.status).toBe(200);
    expect(await ended).toMatchObject({ code: 0 });
  });
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    const { hostname, port } = new URL(server.url);
    const unfinished = connect(Number(port), hostname).on('error', () => undefined);
    unfinished.write(
      'POST /graphql HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{',
    );
    await fetch(`${server.url}/livez`);
    server.child.kill('SIGTERM');
    await setTimeout(1_500);
    expect(server.child.exitCode).toBeNull();
    expect(await stopServer(server)).toMatchObject({ code: 1 });
  });
});

test('without a database the process is alive, not ready, returns 503 with Retry-After, and serves requests that need none', async () => {
  const port = await freePort();
  const { child, ended } = launch('main.js', [], {
    DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/nothing',
    SIGNING_SECRET: SECRET,
    HOST: '127.0.0.1',
    PORT: String(port),
    LOG_LEVEL: 'silent',
  });
  const url = `http://127.0.0.1:${port}`;
  await untilResponding(`${url}/livez`);
  const ready = await fetch(`${url}/readyz`);
  const page = await fetch(`${url}/api/v2/shop/products`);
  const graphql = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"query":"{products{nodes{pk}}}"}',
  });
  const options = await fetch(`${url}/token`, { method: 'OPTIONS' });
  const unknown = await fetch(`${url}/nothing`);
  child.kill('SIGTERM');
  expect([ready.status, page.status, graphql.status, options.status, unknown.status]).toEqual([
    503, 503, 503, 200, 404,
  ]);
  expect(page.headers.get('Retry-After')).toBe('1');
  expect(await page.json()).toEqual({ detail: 'The service is not available at the moment' });
  expect(await graphql.json()).toEqual({
    errors: [
      {
        message: 'The service is not available at the moment',
        extensions: { code: 'UNAVAILABLE', retryAfter: 1 },
      },
    ],
  });
  expect((await ended).code).toBe(0);
});

test('a killed embedded database process is restarted, with all acknowledged writes', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    process.kill(await databaseProcessOf(DATA_DIR), 'SIGKILL');
    await untilServing(server);
    expect(await (await fetch(`${server.url}/api/v2/shop/products`)).json()).toMatchObject({
      count: 1200,
    });
    expect(await stopServer(server)).toMatchObject({ code: 0 });
  });
});

/** Waits until the database is used again: /readyz reports a short outage late, or not at all. */
async function untilServing({ url }: RunningServer): Promise<void> {
  await until(
    async () => (await fetch(`${url}/api/v2/shop/products`)).status === 200,
    'a served request',
  );
}
