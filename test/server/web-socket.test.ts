import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import type { User } from '../../src/features/users/user.entity.ts';
import { writeUntil } from '../support/events.ts';
import { openSession, type SessionCredentials } from '../support/logins.ts';
import { Shop, useShop } from '../support/shop.ts';
import {
  closeSockets,
  connectSocket,
  openSocket,
  startSubscription,
  type RawSocket,
} from '../support/sockets.ts';
import { recordStatements } from '../support/statements.ts';
import { until } from '../support/until.ts';

const PRODUCTS =
  'subscription ($pks: [ID!], $after: String) { productChanged(pks: $pks, after: $after) { kind pk cursor } }';

const shop = useShop();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});
afterEach(closeSockets);

const subscribe = (
  socket: RawSocket,
  id: string,
  query = PRODUCTS,
  more: Record<string, unknown> = {},
) => socket.send({ id, type: 'subscribe', payload: { query, ...more } });
/** Writes until the socket receives an event: from then on, its subscription is active. */
const untilActive = async (socket: RawSocket) => {
  const message = await writeUntil(shop, socket.next());
  expect(message).toMatchObject({ type: 'next' });
  return message;
};
/** The next message other than an event. */
const afterEvents = async (socket: RawSocket) => {
  for (;;) {
    const message = await socket.next();
    if (message?.type !== 'next') return message;
  }
};

test('several subscriptions share a socket, and each ends alone', async () => {
  const { pk } = await shop.makeProduct();
  const socket = await connectSocket(shop);
  subscribe(socket, 'all');
  await untilActive(socket);
  subscribe(socket, 'one', PRODUCTS, { variables: { pks: [String(pk)] } });
  let seen: string[] = [];
  while (!seen.includes('one')) {
    await shop.sql(`update product set price = price + 1 where pk = ${pk}`);
    seen.push((await socket.next()).id);
  }
  socket.send({ id: 'all', type: 'complete' });
  socket.send({ type: 'ping' });
  while ((await socket.next())?.type !== 'pong');
  await shop.makeProduct();
  await shop.sql(`update product set price = price + 1 where pk = ${pk}`);
  seen = [];
  seen.push((await socket.next()).id);
  expect(seen).toEqual(['one']);
});

test('no subscription outlives its socket, also where an id is used again at once', async () => {
  const socket = await connectSocket(shop);
  for (let time = 0; time < 20; time++) {
    subscribe(socket, 'a');
    socket.send({ id: 'a', type: 'complete' });
  }
  await startSubscription(socket, 'b', { query: PRODUCTS });
  socket.socket.terminate();
  await socket.closed;
  await delay(200);
  const { statements } = await recordStatements(() => delay(300));
  expect(statements.filter((text) => text.includes('from change'))).toEqual([]);
});

describe('an error ends its subscription, and no other', () => {
  test.each([
    ['a query', '{ products { nodes { pk } } }'],
    ['a mutation', 'mutation { logout { ended } }'],
  ])('%s', async (_name, query) => {
    const socket = await connectSocket(shop);
    subscribe(socket, 'good');
    await untilActive(socket);
    subscribe(socket, 'bad', query);
    expect(await afterEvents(socket)).toMatchObject({
      id: 'bad',
      type: 'error',
      payload: [{ extensions: { code: 'BAD_REQUEST' } }],
    });
    await shop.makeProduct();
    expect(await socket.next()).toMatchObject({ id: 'good', type: 'next' });
  });

  test('one with variables of another type', async () => {
    const socket = await connectSocket(shop);
    subscribe(socket, 'bad', 'subscription ($pks: [ID!]!) { productChanged(pks: $pks) { pk } }');
    expect(await socket.next()).toMatchObject({
      id: 'bad',
      type: 'next',
      payload: { errors: [{ extensions: { code: 'BAD_USER_INPUT' } }] },
    });
    expect(await socket.next()).toEqual({ id: 'bad', type: 'complete' });
  });
});

test.each([
  ['a token', 'authorization', (made: SessionCredentials) => `Bearer ${made.token}`],
  ['a session key', 'X-SESSION-ID', (made: SessionCredentials) => made.key],
])(
  'connection_init has %s; its end ends all subscriptions and the socket',
  async (_what, name, valueOf) => {
    const made = await openSession(shop, seller);
    const socket = await connectSocket(shop, { [name]: valueOf(made) });
    subscribe(socket, 'products');
    await untilActive(socket);
    await shop.rest('POST', '/session/logout', { json: { session_key: made.key } });
    expect(await afterEvents(socket)).toEqual({
      id: 'products',
      type: 'error',
      payload: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  },
);

describe('a violation of the protocol closes the socket', () => {
  const subscription = (id: string) => ({ id, type: 'subscribe', payload: { query: PRODUCTS } });

  test.each([
    ['no JSON', ['nonsense'], 4400],
    ['a message of no type', ['{}'], 4400],
    ['a subscription before connection_init', [subscription('1')], 4401],
    ['connection_init twice', [{ type: 'connection_init' }, { type: 'connection_init' }], 4429],
    ['one id twice', [{ type: 'connection_init' }, ...[1, 2].map(() => subscription('1'))], 4409],
    ['a message that only servers send', [{ type: 'connection_ack' }], 4500],
    ['an event', [{ type: 'connection_init' }, { id: '1', type: 'next', payload: {} }], 4500],
    ['more than 16 KB', [`"${'x'.repeat(16_400)}"`], 1009],
    ['too many messages', Array.from({ length: 200 }, () => ({ type: 'pong' })), 1008],
  ])('%s, and no server error is logged', async (_name, messages, code) => {
    const socket = await openSocket(shop);
    for (const message of messages) {
      // After connection_init, the next message waits for its acknowledgement.
      socket.send(message);
      if (typeof message === 'object' && message.type === 'connection_init') await socket.next();
    }
    expect((await socket.closed)[0]).toBe(code);
    expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });
});

describe('handshakes that the GraphQL API does not accept', () => {
  const statusOf = (path: string, at = shop) =>
    new Promise<number | undefined>((done) => {
      const socket = new WebSocket(at.url.replace(/^http/, 'ws') + path, ['graphql-transport-ws']);
      socket.on('unexpected-response', (_req, res) => {
        done(res.statusCode);
        socket.terminate();
      });
      socket.on('error', () => undefined);
      socket.on('open', () => done(101));
    });

  test('an upgrade to another protocol than WebSocket is ignored', async () => {
    const status = await new Promise((done, fail) => {
      const outgoing = request(
        `${shop.url}/livez`,
        { headers: { Connection: 'Upgrade', Upgrade: 'h2c' } },
        (res) => {
          res.resume();
          done(res.statusCode);
        },
      );
      outgoing.on('error', fail).end();
    });
    expect(status).toBe(200);
  });

  test('more than the maximum of an address is 429, more than that of the process 503', async () => {
    for (const [setting, status] of [
      ['MAX_SUBSCRIPTION_CONNECTIONS_PER_ADDRESS', 429],
      ['MAX_SUBSCRIPTION_CONNECTIONS', 503],
    ] as const) {
      const small = await new Shop({ [setting]: '1' }).start();
      try {
        const { socket } = await openSocket(small);
        expect(await statusOf('/graphql', small)).toBe(status);
        socket.terminate();
        await until(async () => (await statusOf('/graphql', small)) === 101);
      } finally {
        closeSockets();
        await small.stop();
      }
    }
  });
});

test('at shutdown, sockets are closed with 1001', async () => {
  const leaving = await new Shop().start();
  const socket = await connectSocket(leaving);
  subscribe(socket, 'products');
  await leaving.stop();
  expect(await socket.closed).toEqual([1001, 'Going away']);
  expect(await socket.next()).toBeUndefined();
});
