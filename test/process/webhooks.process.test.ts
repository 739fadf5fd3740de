import { expect, test } from '../support/jest.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { command } from '../support/command.ts';
import { withDataDir } from '../support/directories.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';
import { Receiver } from '../support/receiver.ts';
import { until } from '../support/until.ts';

const SETTINGS = { WEBHOOK_PRIVATE_TARGETS: 'true' };
const INK = { name: 'Ink', barcode: '5901234123457', price: 12.5 };

test('a message that is being sent when SIGTERM comes is sent to its end', async () => {
  await withDataDir(async (DATA_DIR) => {
    const receiver = await new Receiver().open();
    const held: ServerResponse[] = [];
    receiver.answer = (response) => void held.push(response);
    const settings = { ...SETTINGS, DATA_DIR };
    const server = await startServer({ ...settings, LOG_LEVEL: 'info', LOG_REQUESTS: 'false' });
    await add(receiver.url, settings);
    await create(server);
    await until(() => held.length === 1, 'the message');
    const ended = stopServer(server);
    for (const response of held) response.end();
    expect(await ended).toMatchObject({ code: 0, stderr: expect.stringContaining('"event":"webhook.delivered"') });
    await receiver.close();
  });
});

test('the receiver of docs/webhooks.md takes what is signed, once, and refuses all else', async () => {
  const [, example = ''] = /^```js\n(.*?)^```/ms.exec(await readFile('docs/webhooks.md', 'utf8')) ?? [];
  // Beside the packages, where it finds the library.
  const file = 'dist/receiver.mjs';
  await writeFile(file, example);
  await withDataDir(async (DATA_DIR) => {
    const settings = { ...SETTINGS, DATA_DIR };
    const PORT = String(await freePort());
    const server = await startServer(settings);
    const { wid, secret } = await add(`http://127.0.0.1:${PORT}/hooks`, settings);
    const child = spawn(process.execPath, [file], { env: { PORT, WEBHOOK_SECRET: secret } });
    let printed = '';
    child.stdout.on('data', (piece: Buffer) => (printed += piece.toString()));
    await create(server);
    await until(() => printed.includes('\n'), 'what the receiver prints');
    expect(printed).toMatch(/^product\.created \{"pk":\d+,"name":"Ink","barcode":"5901234123457","price":12\.5\}\n$/);
    await until(async () => (await listed(settings)).includes('  delivered  product.created  '), 'what has been delivered');
    const [mid = ''] = (await listed(settings)).split('  ');
    await command(['webhooks', 'redeliver', mid], settings);
    await command(['webhooks', 'test', wid], settings);
    await until(() => printed.includes('webhook.test'), 'the next message');
    expect(printed.split('\n')).toHaveLength(3);
    expect((await fetch(`http://127.0.0.1:${PORT}/`, { method: 'POST', body: '{}' })).status).toBe(401);
    await stopServer(server);
    child.kill();
    await once(child, 'close');
  });
});

async function add(url: string, settings: Record<string, string>): Promise<{ wid: string; secret: string }> {
  const { stdout } = await command(['webhooks', 'add', url], settings);
  const [wid = '', secret = ''] = stdout.trim().split('  ');
  return { wid, secret };
}

async function listed(settings: Record<string, string>): Promise<string> {
  return (await command(['webhooks', 'deliveries'], settings)).stdout;
}

async function create({ url }: RunningServer): Promise<void> {
  const login = await fetch(`${url}/token`, { method: 'POST', body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }) });
  const { access_token: token } = (await login.json()) as { access_token: string };
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  const made = await fetch(`${url}/api/v1/shop/product/`, { method: 'POST', headers, body: JSON.stringify(INK) });
  expect(made.status).toBe(201);
}
