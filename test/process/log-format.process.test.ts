import { expect, test } from '../support/jest.ts';
import { withDataDir } from '../support/directories.ts';
import { freePort, launch, startServer, stopServer, untilResponding } from '../support/process.ts';
const ESCAPE = String.fromCharCode(27);

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

test('LOG_FORMAT=pretty prints each event as one line for people', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_FORMAT: 'pretty', LOG_LEVEL: 'info' });
    await send(server.url);
    const { stderr } = await stopServer(server);
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^\[.*\] INFO: Request completed \{.*"status":200,"user":"alice"/),
        expect.stringMatching(/^\[.*\] INFO: auth\.login \{.*"user":"alice"/),
      ]),
    );
    expect(lines.filter((line) => !/^\[.*\] [A-Z]+: /.test(line))).toEqual([]);
    // The text of a client does not control the terminal.
    expect(stderr).not.toContain(ESCAPE);
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
