import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import {
  freePort,
  launch,
  onTerminal,
  startServer,
  stopServer,
  untilResponding,
} from '../support/process.ts';

const SERVER = join(import.meta.dirname, '../../src/main.js');
const ESCAPE = String.fromCharCode(27);
const REQUEST = /^\S*\d\d:\d\d:\d\d\S* GET \/api\/v2\/shop\/products \S*200\S* \S*\d+\.\d ms\S*$/m;

async function send(url: string): Promise<void> {
  await fetch(`${url}/api/v2/shop/products?page=1`);
  await fetch(`${url}/nothing`);
  const form = (password: string, username = 'alice') =>
    fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams({ username, password }) });
  const { access_token: token } = (await (await form('alice-demo-1')).json()) as {
    access_token: string;
  };
  await form('wrong', `${ESCAPE}[31malice\nforged`);
  await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify({ query: 'query Mine { me { username } }' }),
  });
}

test('LOG_FORMAT=pretty prints a request as one short line, and other events with their members', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_FORMAT: 'pretty', LOG_LEVEL: 'info' });
    await send(server.url);
    const { stderr } = await stopServer(server);
    const lines = stderr
      .replaceAll(/\d\d:\d\d:\d\d/g, 'TIME')
      .replaceAll(/\d+\.\d ms/g, 'MS')
      .trimEnd()
      .split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        'TIME GET /api/v2/shop/products 200 MS',
        'TIME GET 404 MS',
        'TIME POST /token 200 MS alice',
        'TIME POST /token 401 MS',
        'TIME POST query Mine 200 MS alice',
        expect.stringMatching(/^\[TIME\] INFO: Signed in \{.*"user":"alice"/),
      ]),
    );
    expect(lines.filter((line) => !/^(TIME|\[TIME\] [A-Z]+:) /.test(line))).toEqual([]);
    // The text of a client does not control the terminal.
    expect(stderr).not.toContain(ESCAPE);
  });
});

test('without LOG_FORMAT, a terminal gets coloured lines, and a file or pipe JSON', async () => {
  await withDataDir(async (DATA_DIR) => {
    const port = await freePort();
    const { child, ended } = onTerminal(`exec ${process.execPath} ${SERVER}`, {
      DATA_DIR,
      PORT: String(port),
      TERM: 'xterm',
    });
    const url = `http://127.0.0.1:${port}`;
    await untilResponding(url);
    while (!(await fetch(`${url}/readyz`)).ok) await setTimeout(20);
    await send(url);
    child.stdin?.write(String.fromCharCode(3));
    const { stdout } = await ended;
    expect(stdout.replaceAll('\r', '')).toMatch(REQUEST);
    expect(stdout).toContain(`${ESCAPE}[32m200`);

    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'info' });
    await send(server.url);
    const { stderr } = await stopServer(server);
    const lines = stderr.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
      expect.objectContaining({ event: 'request', endpoint: 'GET /api/v2/shop/products' }),
    );
  });
});

test('SIGTERM during the start ends the process without an error', async () => {
  await withDataDir(async (DATA_DIR) => {
    const port = await freePort();
    const { child, ended } = launch('main.js', [], { DATA_DIR, PORT: String(port) });
    await untilResponding(`http://127.0.0.1:${port}/livez`);
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({
      code: 0,
      stderr: expect.not.stringContaining('"level":60'),
    });
  });
});
