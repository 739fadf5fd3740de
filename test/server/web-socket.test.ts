import { request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import { WebSocket } from 'ws';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { writeUntil } from '../support/events.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';
import {
  clientOf,
  closeSockets,
  connectSocket,
  openSocket,
  type RawSocket,
} from '../support/sockets.ts';
import { recordStatements } from '../support/statements.ts';
import { until } from '../support/until.ts';

const PRODUCTS =
  'subscription ($pks: [ID!], $after: String) { productChanged(pks: $pks, after: $after) { kind pk cursor } }';
const SESSION_ENDED = 'subscription { sessionEnded { reason } }';

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

test('the client of the protocol receives products, resumes after a cursor, and unsubscribes', async () => {
  const client = clientOf(shop);
  const first = client.iterate<any>({ query: PRODUCTS });
  const { value } = await writeUntil(shop, first.next());
  const { pk: last } = await shop.makeProduct();
  await first.return?.();
  const again = client.iterate<any>({
    query: PRODUCTS,
    variables: { after: value.data.productChanged.cursor },
  });
  let pk = '';
  while (pk !== String(last)) pk = (await again.next()).value.data.productChanged.pk;
  expect(pk).toBe(String(last));
  await again.return?.();
});

test('an introspection is rejected on a WebSocket', async () => {
  const hidden = await new Shop({ GRAPHQL_EXPLORER: 'false' }).start();
  try {
    const socket = await connectSocket(hidden);
    subscribe(socket, 'schema', '{ __schema { types { name } } }');
    const payload = [
      expect.objectContaining({
        message: expect.stringMatching(/^Only subscriptions/),
      }),
    ];
    expect(await socket.next()).toEqual({ id: 'schema', type: 'error', payload });
  } finally {
    await hidden.stop();
  }
});

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

describe('an id of a subscription that the client has completed', () => {
  /** The statements that read changes after all subscribers have left. */
  const readsLater = async () => {
    const { statements } = await recordStatements(() => delay(300));
    return statements.filter((text) => text.includes('from change'));
  };

  test('may be used again when the subscription has ended, and then receives each event once', async () => {
    const socket = await connectSocket(shop);
    for (let time = 0; time < 3; time++) {
      subscribe(socket, 'a');
      socket.send({ type: 'ping' });
      while ((await socket.next()).type !== 'pong');
      const { pk } = await shop.makeProduct();
      expect(await socket.next()).toMatchObject({
        id: 'a',
        payload: { data: { productChanged: { pk: String(pk) } } },
      });
      socket.send({ id: 'a', type: 'complete' });
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
    }
    expect(await readsLater()).toEqual([]);
  });

  test('closes the socket before that, and no subscription outlives it', async () => {
    const socket = await connectSocket(shop);
    for (let time = 0; time < 20; time++) {
      subscribe(socket, 'a');
      socket.send({ id: 'a', type: 'complete' });
    }
    expect(await socket.closed).toEqual([4409, 'Subscriber for a already exists']);
    expect(await readsLater()).toEqual([]);
  });
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
    [
      'variables of another type',
      'subscription ($pks: [ID!]!) { productChanged(pks: $pks) { pk } }',
      'BAD_USER_INPUT',
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

  test('one without the credentials it needs', async () => {
    const socket = await connectSocket(shop);
    subscribe(socket, 'bad', SESSION_ENDED);
    expect(await socket.next()).toMatchObject({
      id: 'bad',
      type: 'next',
      payload: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] },
    });
    expect(await socket.next()).toEqual({ id: 'bad', type: 'complete' });
  });

  test('more than the maximum of a connection', async () => {
    const small = await new Shop({}, { maxSubscriptionsPerSocket: 2 }).start();
    try {
      const socket = await connectSocket(small);
      for (const id of ['1', '2', '3']) subscribe(socket, id);
      expect(await socket.next()).toMatchObject({
        id: '3',
        type: 'error',
        payload: [{ extensions: { code: 'RATE_LIMITED' } }],
      });
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
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

describe('connection_init has the credentials', () => {
  test.each(['Authorization', 'authorization'])('a token, as %s', async (name) => {
    const sessionKey = await login();
    const { body } = await shop.graphql(
      `mutation { login(username: "${seller.username}", password: "${PASSWORD}") { accessToken sessionKey } }`,
    );
    const socket = await connectSocket(shop, { [name]: `Bearer ${body.data.login.accessToken}` });
    subscribe(socket, 'end', SESSION_ENDED);
    socket.send({ type: 'ping' });
    expect(await socket.next()).toEqual({ type: 'pong' });
    await shop.rest('POST', '/session/logout', {
      json: { session_key: body.data.login.sessionKey },
    });
    expect(await socket.next()).toMatchObject({
      id: 'end',
      payload: { data: { sessionEnded: { reason: 'ENDED' } } },
    });
    expect(sessionKey).not.toBe(body.data.login.sessionKey);
  });

  test.each([
    ['Authorization', (key: string) => `Bearer ${key}`],
    ['authorization', (key: string) => `bearer ${key}`],
    ['X-Session-Id', undefined],
  ] as [string, ((token: string) => string) | undefined][])(
    'credentials in headers, as clients of HTTP name them: %s',
    async (name, format) => {
      const { body } = await shop.graphql(
        `mutation { login(username: "${seller.username}", password: "${PASSWORD}") { accessToken sessionKey } }`,
      );
      const { accessToken, sessionKey } = body.data.login as Record<string, string>;
      const value = format ? format(String(accessToken)) : sessionKey;
      const socket = await connectSocket(shop, { headers: { [name]: value, 'X-Other': [1] } });
      subscribe(socket, 'end', SESSION_ENDED);
      socket.send({ type: 'ping' });
      expect(await socket.next()).toEqual({ type: 'pong' });
      await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
      expect(await socket.next()).toMatchObject({
        payload: { data: { sessionEnded: { reason: 'ENDED' } } },
      });
    },
  );

  test('credentials beside headers take precedence', async () => {
    const token = shop.tokenOf(seller);
    const bad = { headers: { Authorization: 'Bearer nonsense' } };
    await connectSocket(shop, { Authorization: `Bearer ${token}`, ...bad });
    const socket = await openSocket(shop, '/graphql', undefined, {
      Authorization: `Bearer ${token}`,
    });
    socket.send({ type: 'connection_init', payload: bad });
    expect(await socket.closed).toEqual([4403, 'Could not validate credentials']);
  });

  test.each([null, [], 'Authorization', 1, { Authorization: 1 }])(
    'headers without credentials count as none: %j',
    async (headers) => {
      const socket = await connectSocket(shop, { headers });
      subscribe(socket, 'end', SESSION_ENDED);
      expect(await socket.next()).toMatchObject({
        payload: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] },
      });
    },
  );

  test('a session key; its end ends all subscriptions and the socket', async () => {
    const sessionKey = await login();
    const socket = await connectSocket(shop, { 'X-SESSION-ID': sessionKey });
    subscribe(socket, 'products');
    await untilActive(socket);
    subscribe(socket, 'end', SESSION_ENDED);
    await shop.graphql('mutation { logoutEverywhere { ended } }', {}, { sessionKey });
    const messages = [];
    for (let message = await socket.next(); message; message = await socket.next())
      messages.push(message);
    const last = messages.filter(({ payload }) => payload?.data?.productChanged === undefined);
    expect(last).toContainEqual({
      id: 'end',
      type: 'next',
      payload: { data: { sessionEnded: { reason: 'ENDED' } } },
    });
    for (const id of ['end', 'products']) {
      expect(last).toContainEqual({
        id,
        type: 'error',
        payload: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }],
      });
    }
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  });

  test('an idle socket is closed, too', async () => {
    const socket = await connectSocket(shop, { 'X-SESSION-ID': await login() });
    await accounts.disable(shop.context(), seller.username);
    expect(await socket.closed).toEqual([4403, 'Inactive user']);
  });

  test('headers of the handshake count where the message has none', async () => {
    const sessionKey = await login();
    const socket = await openSocket(shop, '/graphql', undefined, { 'X-SESSION-ID': sessionKey });
    socket.send({ type: 'connection_init' });
    expect(await socket.next()).toEqual({ type: 'connection_ack' });
    await shop.rest('POST', '/session/logout', { json: { session_key: sessionKey } });
    expect(await socket.closed).toEqual([4403, 'Not authenticated']);
  });

  test.each([
    ['an invalid token', { Authorization: 'Bearer nonsense' }, 'Could not validate credentials'],
    ['an invalid session key', { 'X-SESSION-ID': 'nonsense' }, 'Not authenticated'],
    ['two session keys', { 'X-SESSION-ID': 'one', 'X-SESSIONID': 'two' }, 'Not authenticated'],
  ])('%s: closed', async (_name, payload, reason) => {
    const socket = await openSocket(shop);
    socket.send({ type: 'connection_init', payload });
    expect(await socket.closed).toEqual([4403, reason]);
  });

  test('credentials in the URL are ignored', async () => {
    const socket = await openSocket(shop, `/graphql?authorization=Bearer+${shop.tokenOf(seller)}`);
    socket.send({ type: 'connection_init' });
    await socket.next();
    subscribe(socket, 'end', SESSION_ENDED);
    expect(await socket.next()).toMatchObject({
      payload: { errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] },
    });
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
    [
      'one long id twice',
      [{ type: 'connection_init' }, ...[1, 2].map(() => subscription('€'.repeat(30)))],
      4409,
    ],
    [
      'an id of more than 90 bytes',
      [{ type: 'connection_init' }, subscription('€'.repeat(31))],
      4400,
    ],
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

  test('another protocol', async () => {
    const socket = await openSocket(shop, '/graphql', []);
    expect((await socket.closed)[0]).toBe(4406);
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

  test('another path is served as usual', async () => {
    expect(await statusOf('/livez')).toBe(200);
    expect(await statusOf('/nowhere')).toBe(404);
    expect(await statusOf('/graphql/')).toBe(101);
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
