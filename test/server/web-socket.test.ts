import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { writtenUntil } from '../support/events.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';
import { clientOf, closeSockets, greet, openSocket, type RawSocket } from '../support/sockets.ts';
import { counted } from '../support/statements.ts';
import { until } from '../support/until.ts';

const PRODUCTS = 'subscription ($pks: [ID!], $after: String) { productChanged(pks: $pks, after: $after) { kind pk cursor } }';
const OWN_END = 'subscription { sessionEnded { reason } }';

const shop = useShop();
let seller: User;

beforeEach(async () => {
  seller = await shop.makeUser({ scopes: ['products:write'] });
});
afterEach(closeSockets);

const login = async () => {
  const { body } = await shop.rest('POST', '/session/login', { json: { username: seller.username, password: PASSWORD } });
  return String(body.session_key);
};
const subscribe = (socket: RawSocket, id: string, query = PRODUCTS, more: Record<string, unknown> = {}) =>
  socket.send({ id, type: 'subscribe', payload: { query, ...more } });
/** Writes until the socket is told of it: from then on, it listens. */
const listening = async (socket: RawSocket) => {
  const message = await writtenUntil(shop, socket.next());
  expect(message).toMatchObject({ type: 'next' });
  return message;
};
/** The next message that is no event. */
const afterEvents = async (socket: RawSocket) => {
  for (;;) {
    const message = await socket.next();
    if (message?.type !== 'next') return message;
  }
};

test('the client of the protocol is told of products, goes on after a cursor, and ends what it no longer wants', async () => {
  const client = clientOf(shop);
  const first = client.iterate<any>({ query: PRODUCTS });
  const { value } = await writtenUntil(shop, first.next());
  const { pk: last } = await shop.makeProduct();
  await first.return?.();
  const again = client.iterate<any>({ query: PRODUCTS, variables: { after: value.data.productChanged.cursor } });
  let pk = '';
  while (pk !== String(last)) pk = (await again.next()).value.data.productChanged.pk;
  expect(pk).toBe(String(last));
  await again.return?.();
});

test('one that asks for the schema where that is hidden is refused', async () => {
  const hidden = await new Shop({ GRAPHQL_EXPLORER: 'false' }).start();
  try {
    const socket = await greet(hidden);
    subscribe(socket, 'schema', '{ __schema { types { name } } }');
    const payload = [expect.objectContaining({ message: 'Introspection is disabled on this server (GRAPHQL_EXPLORER)' })];
    expect(await socket.next()).toEqual({ id: 'schema', type: 'error', payload });
  } finally {
    await hidden.stop();
  }
});

test('several subscriptions share a socket, and each ends by itself', async () => {
  const { pk } = await shop.makeProduct();
  const socket = await greet(shop);
  subscribe(socket, 'all');
  await listening(socket);
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

describe('an id may be used again as soon as the client has ended what had it', () => {
  /** What the socket is told of the next product, and of nothing else. */
  const toldOfOne = async (socket: RawSocket) => {
    const { pk } = await shop.makeProduct();
    const told = [];
    for (let message = await socket.next(); ; message = await socket.next()) {
      if (message.payload?.data.productChanged.pk === String(pk)) told.push(message.id);
      if (told.length === 1) socket.send({ type: 'ping' });
      if (message.type === 'pong') return told;
      if (message.type !== 'next') throw new Error(JSON.stringify(message));
    }
  };
  /** The statements that look for changes after everyone has left. */
  const readsLater = async () => {
    const { statements } = await counted(() => delay(300));
    return statements.filter((text) => text.includes('from change'));
  };

  test.each(['before it has begun', 'while it runs'])('%s, and then is told once', async (when) => {
    const socket = await greet(shop);
    subscribe(socket, 'a');
    if (when === 'while it runs') await listening(socket);
    socket.send({ id: 'a', type: 'complete' });
    subscribe(socket, 'a');
    await listening(socket);
    expect(await toldOfOne(socket)).toEqual(['a']);
    socket.send({ id: 'a', type: 'complete' });
    socket.send({ type: 'ping' });
    while ((await socket.next()).type !== 'pong');
    expect(await readsLater()).toEqual([]);
  });

  test('any number of times, and nothing of it outlives the socket', async () => {
    const socket = await greet(shop);
    for (let time = 0; time < 20; time++) {
      subscribe(socket, 'a');
      socket.send({ id: 'a', type: 'complete' });
    }
    subscribe(socket, 'a');
    await listening(socket);
    expect(await toldOfOne(socket)).toEqual(['a']);
    socket.socket.close();
    await socket.closed;
    expect(await readsLater()).toEqual([]);
  });

  test('where it has as many as it may, too', async () => {
    const small = await new Shop({ MAX_SUBSCRIPTIONS_PER_SOCKET: '1' }).start();
    try {
      const socket = await greet(small);
      subscribe(socket, 'a');
      socket.send({ id: 'a', type: 'complete' });
      subscribe(socket, 'a');
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
      subscribe(socket, 'b');
      expect(await socket.next()).toMatchObject({ id: 'b', type: 'error', payload: [{ extensions: { code: 'RATE_LIMITED' } }] });
    } finally {
      closeSockets();
      await small.stop();
    }
  });
});

describe('what is refused ends its subscription, and no other', () => {
  test.each([
    ['no GraphQL', '{', 'GRAPHQL_PARSE_FAILED'],
    ['what the schema has not', 'subscription { productSold { pk } }', 'GRAPHQL_VALIDATION_FAILED'],
    ['a query', '{ products { nodes { pk } } }', 'BAD_REQUEST'],
    ['a mutation', 'mutation { logout { ended } }', 'BAD_REQUEST'],
    [
      'too many aliases',
      `subscription { productChanged { ${Array.from({ length: 16 }, (_, n) => `a${n}: pk`).join(' ')} } }`,
      'QUERY_TOO_COMPLEX',
    ],
    ['variables that do not fit', 'subscription ($pks: [ID!]!) { productChanged(pks: $pks) { pk } }', 'BAD_USER_INPUT'],
  ])('%s', async (_name, query, code) => {
    const socket = await greet(shop);
    subscribe(socket, 'good');
    await listening(socket);
    subscribe(socket, 'bad', query);
    expect(await afterEvents(socket)).toMatchObject({ id: 'bad', type: 'error', payload: [{ extensions: { code } }] });
    await shop.makeProduct();
    expect(await socket.next()).toMatchObject({ id: 'good', type: 'next' });
  });

  test('one that may not begin', async () => {
    const socket = await greet(shop);
    subscribe(socket, 'bad', OWN_END);
    expect(await socket.next()).toMatchObject({
      id: 'bad',
      type: 'next',
      payload: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] },
    });
    expect(await socket.next()).toEqual({ id: 'bad', type: 'complete' });
  });

  test('more than a connection may have', async () => {
    const small = await new Shop({ MAX_SUBSCRIPTIONS_PER_SOCKET: '2' }).start();
    try {
      const socket = await greet(small);
      for (const id of ['1', '2', '3']) subscribe(socket, id);
      expect(await socket.next()).toMatchObject({ id: '3', type: 'error', payload: [{ extensions: { code: 'RATE_LIMITED' } }] });
      socket.send({ id: '1', type: 'complete' });
      subscribe(socket, '4');
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    } finally {
      closeSockets();
      await small.stop();
    }
  });
});

describe('who is there is said by connection_init', () => {
  test.each(['Authorization', 'authorization'])('a token, as %s', async (name) => {
    const sessionKey = await login();
    const { body } = await shop.graphql(
      `mutation { login(username: "${seller.username}", password: "${PASSWORD}") { accessToken sessionKey } }`,
    );
    const socket = await greet(shop, { [name]: `Bearer ${body.data.login.accessToken}` });
    subscribe(socket, 'end', OWN_END);
    socket.send({ type: 'ping' });
    expect(await socket.next()).toEqual({ type: 'pong' });
    await shop.rest('POST', '/session/logout', { json: { session_key: body.data.login.sessionKey } });
    expect(await socket.next()).toMatchObject({ id: 'end', payload: { data: { sessionEnded: { reason: 'ENDED' } } } });
    expect(sessionKey).not.toBe(body.data.login.sessionKey);
  });

  test('a session key; its end ends all there is on the socket, and the socket', async () => {
    const sessionKey = await login();
    const socket = await greet(shop, { 'X-SESSION-ID': sessionKey });
    subscribe(socket, 'products');
    await listening(socket);
    subscribe(socket, 'end', OWN_END);
    await shop.graphql('mutation { logoutEverywhere { ended } }', {}, { sessionKey });
    const told = [];
    for (let message = await socket.next(); message; message = await socket.next()) told.push(message);
    const last = told.filter(({ payload }) => payload?.data?.productChanged === undefined);
    expect(last).toContainEqual({ id: 'end', type: 'next', payload: { data: { sessionEnded: { reason: 'ENDED' } } } });
    for (const id of ['end', 'products']) {
      expect(last).toContainEqual({
        id,
        type: 'error',
        payload: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }],
      });
    }
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  });

  test('the end of an idle socket comes, too', async () => {
    const socket = await greet(shop, { 'X-SESSION-ID': await login() });
    await accounts.disable(shop.context(), seller.username);
    expect(await socket.closed).toEqual([4403, 'Inactive user']);
  });

  test('headers of the handshake count where the message brings none', async () => {
    const sessionKey = await login();
    const socket = await openSocket(shop, '/graphql', undefined, { 'X-SESSION-ID': sessionKey });
    socket.send({ type: 'connection_init' });
    expect(await socket.next()).toEqual({ type: 'connection_ack' });
    await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  });

  test.each([
    ['a token that is none', { Authorization: 'Bearer nonsense' }, 'Could not validate credentials'],
    ['a session key that is none', { 'X-SESSION-ID': 'nonsense' }, 'Not authenticated'],
    ['two session keys', { 'X-SESSION-ID': 'one', 'X-SESSIONID': 'two' }, 'Not authenticated'],
  ])('%s: closed', async (_name, payload, reason) => {
    const socket = await openSocket(shop);
    socket.send({ type: 'connection_init', payload });
    expect(await socket.closed).toEqual([4403, reason]);
  });

  test('credentials in the address are not looked at', async () => {
    const socket = await openSocket(shop, `/graphql?authorization=Bearer+${shop.tokenOf(seller)}`);
    socket.send({ type: 'connection_init' });
    await socket.next();
    subscribe(socket, 'end', OWN_END);
    expect(await socket.next()).toMatchObject({ payload: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] } });
  });
});

describe('who does not keep to the protocol is let go', () => {
  const subscription = (id: string) => ({ id, type: 'subscribe', payload: { query: PRODUCTS } });

  test.each([
    ['no JSON', ['nonsense'], 4400],
    ['a message of no type', ['{}'], 4400],
    ['a subscription before connection_init', [subscription('1')], 4401],
    ['connection_init twice', [{ type: 'connection_init' }, { type: 'connection_init' }], 4429],
    ['one id twice', [{ type: 'connection_init' }, ...[1, 2].map(() => subscription('1'))], 4409],
    ['one long id twice', [{ type: 'connection_init' }, ...[1, 2].map(() => subscription('€'.repeat(100)))], 4409],
    ['an id of more than 100 characters', [{ type: 'connection_init' }, subscription('x'.repeat(101))], 4400],
    ['a message that only servers send', [{ type: 'connection_ack' }], 4400],
    ['an event', [{ type: 'connection_init' }, { id: '1', type: 'next', payload: {} }], 4400],
    ['more than 8 KB to say who is there', [{ type: 'connection_init', payload: { more: 'x'.repeat(9_000) } }], 1009],
    ['more than 8 KB to ask for a sign of life', [{ type: 'ping', payload: { more: 'x'.repeat(9_000) } }], 1009],
    ['more than 100 KB', [`"${'x'.repeat(110_000)}"`], 1009],
    ['more messages than anyone needs', Array.from({ length: 200 }, () => ({ type: 'pong' })), 1008],
  ])('%s, and nothing of it is a fault of ours', async (_name, messages, code) => {
    const socket = await openSocket(shop);
    for (const message of messages) {
      // After connection_init, what follows waits for its answer.
      socket.send(message);
      if (typeof message === 'object' && message.type === 'connection_init') await socket.next();
    }
    expect((await socket.closed)[0]).toBe(code);
    expect(shop.logged.filter((line) => line.includes('"level":50'))).toEqual([]);
  });

  test('another protocol', async () => {
    const socket = await openSocket(shop, '/graphql', []);
    expect((await socket.closed)[0]).toBe(4406);
  });
});

describe('what is no WebSocket to the door', () => {
  const refused = (path: string, at = shop) =>
    new Promise<number | undefined>((done) => {
      const socket = new WebSocket(at.url.replace(/^http/, 'ws') + path, ['graphql-transport-ws']);
      socket.on('unexpected-response', (_req, res) => {
        done(res.statusCode);
        socket.terminate();
      });
      socket.on('error', () => undefined);
      socket.on('open', () => done(101));
    });

  test('another path is answered as usual', async () => {
    expect(await refused('/livez')).toBe(200);
    expect(await refused('/nowhere')).toBe(404);
    expect(await refused('/graphql/')).toBe(101);
  });

  test('another protocol than WebSocket is not taken over', async () => {
    const status = await new Promise((done, fail) => {
      const asked = request(`${shop.url}/livez`, { headers: { Connection: 'Upgrade', Upgrade: 'h2c' } }, (res) => {
        res.resume();
        done(res.statusCode);
      });
      asked.on('error', fail).end();
    });
    expect(status).toBe(200);
  });

  test('more than an address may have is answered 429, more than the process takes 503', async () => {
    for (const [setting, status] of [
      ['MAX_LIVE_PER_ADDRESS', 429],
      ['MAX_LIVE_CONNECTIONS', 503],
    ] as const) {
      const small = await new Shop({ [setting]: '1' }).start();
      try {
        const { socket } = await openSocket(small);
        expect(await refused('/graphql', small)).toBe(status);
        socket.terminate();
        await until(async () => (await refused('/graphql', small)) === 101);
      } finally {
        closeSockets();
        await small.stop();
      }
    }
  });
});

test('on the way out, clients are told to come back', async () => {
  const leaving = await new Shop().start();
  const socket = await greet(leaving);
  subscribe(socket, 'products');
  await leaving.stop();
  expect(await socket.closed).toEqual([1001, 'Going away']);
  expect(await socket.next()).toBeUndefined();
});
