import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import type { User } from '../../src/features/users/user.entity.ts';
import { writeUntil } from '../support/events.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';
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

const login = async () => {
  const { body } = await shop.rest('POST', '/session/login', {
    json: { username: seller.username, password: PASSWORD },
  });
  return String(body.session_key);
};
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
    ['a syntax error', '{', 'GRAPHQL_PARSE_FAILED'],
    ['an unknown field', 'subscription { productSold { pk } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a query', '{ products { nodes { pk } } }', 'BAD_REQUEST'],
    ['a mutation', 'mutation { logout { ended } }', 'BAD_REQUEST'],
    [
      'too many aliases',
      `subscription { productChanged { ${Array.from({ length: 16 }, (_, n) => `a${n}: pk`).join(' ')} } }`,
      'QUERY_TOO_COMPLEX',
    ],
  ])('%s', async (_name, query, code) => {
    const socket = await connectSocket(shop);
    subscribe(socket, 'good');
    await untilActive(socket);
    subscribe(socket, 'bad', query);
    expect(await afterEvents(socket)).toMatchObject({
      id: 'bad',
      type: 'error',
      payload: [{ extensions: { code } }],
    });
    await shop.makeProduct();
    expect(await socket.next()).toMatchObject({ id: 'good', type: 'next' });
  });

  test.each([
    [
      'with variables of another type',
      'subscription ($pks: [ID!]!) { productChanged(pks: $pks) { pk } }',
      'BAD_USER_INPUT',
    ],
  ])('one %s', async (_name, query, code) => {
    const socket = await connectSocket(shop);
    subscribe(socket, 'bad', query);
    expect(await socket.next()).toMatchObject({
      id: 'bad',
      type: 'next',
      payload: { errors: [{ extensions: { code } }] },
    });
    expect(await socket.next()).toEqual({ id: 'bad', type: 'complete' });
  });
});

describe('connection_init has the credentials', () => {
  test.each(['authorization'])('a token, as %s', async (name) => {
    const sessionKey = await login();
    const { body } = await shop.graphql(
      `mutation { login(username: "${seller.username}", password: "${PASSWORD}") { accessToken sessionKey } }`,
    );
    const socket = await connectSocket(shop, { [name]: `Bearer ${body.data.login.accessToken}` });
    await shop.rest('POST', '/session/logout', {
      json: { session_key: body.data.login.sessionKey },
    });
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
    expect(sessionKey).not.toBe(body.data.login.sessionKey);
  });

  test('a session key; its end ends all subscriptions and the socket', async () => {
    const sessionKey = await login();
    const socket = await connectSocket(shop, { 'X-SESSION-ID': sessionKey });
    subscribe(socket, 'products');
    await untilActive(socket);
    await shop.graphql('mutation { logoutEverywhere { ended } }', {}, { sessionKey });
    const messages = [];
    for (let message = await socket.next(); message; message = await socket.next())
      messages.push(message);
    const last = messages.filter(({ payload }) => payload?.data?.productChanged === undefined);
    expect(last).toContainEqual({
      id: 'products',
      type: 'error',
      payload: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }],
    });
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  });

  test('headers of the handshake count where the message has none', async () => {
    const sessionKey = await login();
    const socket = await openSocket(shop, '/graphql', undefined, { 'X-SESSION-ID': sessionKey });
    socket.send({ type: 'connection_init' });
    expect(await socket.next()).toEqual({ type: 'connection_ack' });
    await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  });
});

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
