import { expect, test } from '../support/jest.ts';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { command } from '../support/command.ts';
import { withDataDir } from '../support/directories.ts';
import { freePort, startServer, stopServer, type RunningServer } from '../support/process.ts';
import { Receiver } from '../support/receiver.ts';
import { bearer, create } from '../support/shopper.ts';
import { until } from '../support/until.ts';

const SETTINGS = { WEBHOOK_ALLOW_PRIVATE_NETWORKS: 'true' };

test('a webhook request in flight is completed on SIGTERM', async () => {
  await withDataDir(async (DATA_DIR) => {
    const receiver = await new Receiver().open();
    const pending: ServerResponse[] = [];
    receiver.answer = (response) => void pending.push(response);
    const settings = { ...SETTINGS, DATA_DIR };
    const server = await startServer({ ...settings, LOG_LEVEL: 'info' });
    await add(receiver.url, settings);
    await createInk(server);
    await until(() => pending.length === 1, 'the message');
    const ended = stopServer(server);
    for (const response of pending) response.end();
    expect(await ended).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('"event":"webhook.delivered"'),
    });
    await receiver.close();
  });
});

test('the receiver of docs/events.md accepts each signed message once, and rejects others', async () => {
  const [, example = ''] =
    /^### Receiving webhooks.*?^```js\n(.*?)^```/ms.exec(
      await readFile('docs/events.md', 'utf8'),
    ) ?? [];
  // In dist, where it can import the library.
  const file = 'dist/receiver.mjs';
  await writeFile(file, example);
  await withDataDir(async (DATA_DIR) => {
    const settings = { ...SETTINGS, DATA_DIR };
    const PORT = String(await freePort());
    const server = await startServer(settings);
    const { webhookId, secret } = await add(`http://127.0.0.1:${PORT}/hooks`, settings);
    const child = spawn(process.execPath, [file], { env: { PORT, WEBHOOK_SECRET: secret } });
    let printed = '';
    child.stdout.on('data', (piece: Buffer) => (printed += piece.toString()));
    await createInk(server);
    await until(() => printed.includes('\n'), 'the output of the receiver');
    expect(printed).toMatch(
      /^product\.created \{"pk":\d+,"name":"Ink","barcode":"5901234123457","price":7\.5\}\n$/,
    );
    await until(
      async () => (await listed(settings)).includes('  delivered  product.created  '),
      'the delivery',
    );
    const [messageId = ''] = (await listed(settings)).split('  ');
    await command(['webhooks', 'redeliver', messageId], settings);
    await command(['webhooks', 'test', webhookId], settings);
    await until(() => printed.includes('webhook.test'), 'the next message');
    expect(printed.split('\n')).toHaveLength(3);
    expect((await fetch(`http://127.0.0.1:${PORT}/`, { method: 'POST', body: '{}' })).status).toBe(
      401,
    );
    await stopServer(server);
    child.kill();
    await once(child, 'close');
  });
});

async function add(
  url: string,
  settings: Record<string, string>,
): Promise<{ webhookId: string; secret: string }> {
  const { stdout } = await command(['webhooks', 'add', url], settings);
  const [webhookId = '', secret = ''] = stdout.trim().split('  ');
  return { webhookId, secret };
}

async function listed(settings: Record<string, string>): Promise<string> {
  return (await command(['webhooks', 'deliveries'], settings)).stdout;
}

async function createInk({ url }: RunningServer): Promise<void> {
  const made = await create(url, await bearer(url), '5901234123457', 'Ink');
  expect(made.status).toBe(201);
}
