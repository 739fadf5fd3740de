import { once } from 'node:events';
import { expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { addedBy } from '../support/resident.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const LISTENERS = 1_000;
/** All of them together, in MiB. */
const MOST = 100;

test('a thousand listeners on WebSockets of their own are all told, and take little memory', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, MAX_LIVE_PER_ADDRESS: String(LISTENERS) });
    const sockets: WebSocket[] = [];
    const added = await addedBy(server, async () => {
      const query = 'subscription { productChanged { kind pk product { name price } } }';
      for (let made = 0; made < LISTENERS; made++) sockets.push(await listening(server.url, query));
      const told = sockets.map((socket) => once(socket, 'message'));
      const token = await tokenOf(server.url);
      await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: JSON.stringify({ query: 'mutation { updateProduct(pk: 1, input: { price: 7 }) { pk } }' }),
      });
      const messages = (await Promise.all(told)).map(([data]) => String(data));
      expect(new Set(messages).size).toBe(1);
      expect(messages[0]).toContain('"price":7');
    });
    for (const socket of sockets) socket.terminate();
    await stopServer(server);
    console.log(`${LISTENERS} listeners took ${Math.round(added)} MiB`);
    expect(added).toBeLessThan(MOST);
  });
});

/** A WebSocket that has said what it listens to, and has been answered since. */
async function listening(url: string, query: string): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/graphql`, ['graphql-transport-ws']);
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'connection_init' }));
  await once(socket, 'message');
  socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
  socket.send(JSON.stringify({ type: 'ping' }));
  await once(socket, 'message');
  return socket;
}

async function tokenOf(url: string): Promise<string> {
  const answer = await fetch(`${url}/token`, {
    method: 'POST',
    body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
  });
  return ((await answer.json()) as { access_token: string }).access_token;
}
