import { expect, test } from '../support/jest.ts';
import { closeStreams, openStream } from '../support/events.ts';
import { withDataDir } from '../support/directories.ts';
import {
  databaseProcessOf,
  startServer,
  stopServer,
  type RunningServer,
} from '../support/process.ts';
import { until } from '../support/until.ts';

const CHANGED = 'subscription { productChanged { pk product { price } } }';

test('on SIGTERM an event stream ends without a final event, so that its client reconnects, and the exit is not delayed', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR });
    const stream = await subscribe(server);
    const ended = stopServer(server);
    expect(await stream.next()).toBeUndefined();
    expect(await ended).toMatchObject({ code: 0, stderr: '' });
  });
});

test('an event stream survives a database restart, and gets later events', async () => {
  await withDataDir(async (DATA_DIR) => {
    const server = await startServer({ DATA_DIR, LOG_LEVEL: 'silent' });
    const stream = await subscribe(server);
    process.kill(await databaseProcessOf(DATA_DIR), 'SIGKILL');
    const token = await tokenOf(server);
    await until(async () => (await change(server, token)) === 200, 'a change');
    expect((await stream.next())?.data).toEqual({
      data: { productChanged: { pk: '1', product: { price: 7 } } },
    });
    closeStreams();
    expect(await stopServer(server)).toMatchObject({ code: 0 });
  });
});

function subscribe({ url }: RunningServer) {
  return openStream(`${url}/graphql?${new URLSearchParams({ query: CHANGED }).toString()}`, {
    headers: { Accept: 'text/event-stream' },
  });
}

async function tokenOf({ url }: RunningServer): Promise<string> {
  let token = '';
  await until(async () => {
    const answer = await fetch(`${url}/token`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'alice', password: 'alice-demo-1' }),
    });
    token =
      answer.status === 200 ? ((await answer.json()) as { access_token: string }).access_token : '';
    return token !== '';
  }, 'a token');
  return token;
}

async function change({ url }: RunningServer, token: string): Promise<number> {
  const { status } = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
    body: JSON.stringify({
      query: 'mutation { updateProduct(pk: 1, input: { price: 7 }) { pk } }',
    }),
  });
  return status;
}
