import { once } from 'node:events';
import { expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import { memoryAddedBy } from '../support/resident.ts';
import { withDataDir } from '../support/directories.ts';
import { startServer, stopServer } from '../support/process.ts';

const SUBSCRIBERS = 1_000;
/** Maximum memory of all subscribers, in MiB. */
const MAX_ADDED = 100;

test('1,000 subscribers on separate WebSockets all get an event, and take little memory', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({
      DATA_DIR,
      MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS: String(SUBSCRIBERS),
    });
    const sockets: WebSocket[] = [];
    const added = await memoryAddedBy(server, async () => {
      const query = 'subscription { productChanged { kind pk product { name price } } }';
      for (let made = 0; made < SUBSCRIBERS; made++)
        sockets.push(await subscribe(server.url, query));
      const events = sockets.map((socket) => once(socket, 'message'));
      const token = await tokenOf(server.url);
      await fetch(`${server.url}/graphql`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
        body: JSON.stringify({
          query: 'mutation { updateProduct(pk: 1, input: { price: 7 }) { pk } }',
        }),
      });
      const messages = (await Promise.all(events)).map(([data]) => String(data));
      expect(new Set(messages).size).toBe(1);
      expect(messages[0]).toContain('"price":7');
    });
    for (const socket of sockets) socket.terminate();
    await stopServer(server);
    console.log(`${SUBSCRIBERS} subscribers took ${Math.round(added)} MiB`);
    expect(added).toBeLessThan(MAX_ADDED);
  });
});

/** Opens a WebSocket with an active subscription. */
async function subscribe(url: string, query: string): Promise<WebSocket> {
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
