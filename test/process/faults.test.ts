import { expect, test } from '@jest/globals';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { answering, freePort, launch, startServer, stopServer, withDirectory, type RunningServer } from '../support/process.ts';

const SECRET = 'only-for-tests-only-for-tests-only';

test('SIGTERM lets what is in flight finish, takes nothing new, and ends with 0', async () => {
  await withDirectory(async (DATA_DIR) => {
    // Hashing takes long enough to be in flight when the signal comes.
    const server = await startServer({ DATA_DIR, BCRYPT_COST: '12' });
    const logins = ['alice', 'bob', 'admin'].map((username) =>
      begin(`${server.url}/token`, `username=${username}&password=${username}-demo-1`),
    );
    await Promise.all(logins.map(({ sent }) => sent));
    // Connections are taken in their order, so once this one is served the logins are with the server.
    await fetch(`${server.url}/livez`);
    const ended = stopServer(server);
    expect(await Promise.all(logins.map(({ status }) => status))).toEqual([200, 200, 200]);
    expect(await ended).toMatchObject({ code: 0 });
    await expect(fetch(`${server.url}/livez`)).rejects.toThrow('fetch failed');
  });
});

test('without a database the process stays: alive, not ready, 503 with Retry-After, and what needs none is answered', async () => {
  const port = await freePort();
  const { child, ended } = launch('main.js', [], {
    DATABASE_URL: 'postgresql://nobody@127.0.0.1:1/nothing',
    SIGNING_SECRET: SECRET,
    HOST: '127.0.0.1',
    PORT: String(port),
    LOG_LEVEL: 'silent',
  });
  const url = `http://127.0.0.1:${port}`;
  await answering(`${url}/livez`);
  const ready = await fetch(`${url}/readyz`);
  const page = await fetch(`${url}/api/v2/shop/products`);
  const graphql = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: '{"query":"{me{id}}"}',
  });
  const options = await fetch(`${url}/token`, { method: 'OPTIONS' });
  const unknown = await fetch(`${url}/nothing`);
  child.kill('SIGTERM');
  expect([ready.status, page.status, graphql.status, options.status, unknown.status]).toEqual([503, 503, 503, 200, 404]);
  expect(page.headers.get('Retry-After')).toBe('1');
  expect(await page.json()).toEqual({ detail: 'The service is not available at the moment' });
  expect(await graphql.json()).toEqual({
    errors: [{ message: 'The service is not available at the moment', extensions: { code: 'UNAVAILABLE', retryAfter: 1 } }],
  });
  expect((await ended).code).toBe(0);
});

test('the embedded database is started again when its process is killed, with all that was acknowledged', async () => {
  await withDirectory(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    const { child } = JSON.parse(await readFile(join(DATA_DIR, 'lock'), 'utf8')) as { child: { pid: number } };
    process.kill(child.pid, 'SIGKILL');
    await untilReady(server);
    expect(await (await fetch(`${server.url}/api/v2/shop/products`)).json()).toMatchObject({ count: 1200 });
    expect(await stopServer(server)).toMatchObject({ code: 0 });
  });
});

/** Sends a form: `sent` resolves when it is on its way, `status` when it is answered. */
function begin(url: string, form: string): { sent: Promise<unknown>; status: Promise<number | undefined> } {
  const posted = request(url, { method: 'POST', agent: false, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
  const status = once(posted, 'response').then(([answer]: IncomingMessage[]) => answer?.resume().statusCode);
  const sent = once(posted, 'finish');
  posted.end(form);
  return { sent, status };
}

async function untilReady({ url }: RunningServer): Promise<void> {
  while ((await fetch(`${url}/readyz`)).status !== 200) await new Promise((done) => void setTimeout(done, 20));
}
