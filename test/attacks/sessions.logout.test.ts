import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { newSecretKey } from '../../src/core/secret-key.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { openSession, type SessionCredentials } from '../support/logins.ts';
import { leaksIn, ME } from '../support/forge.ts';
import { sized } from '../support/sized.ts';

const LOGOUT_BY_KEY = 'mutation ($key: String) { logout(sessionKey: $key) { ended } }';
const BOTH = '{"detail":"Logout successful","data":"Logout successful"}';
const STRING_TYPE = {
  type: 'string_type',
  loc: ['body', 'session_key'],
  msg: 'Input should be a valid string',
};
const MISSING = { type: 'missing', loc: ['body', 'session_key'], msg: 'Field required' };
const UNAUTHENTICATED = {
  errors: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }],
};

const shop = useShop();
/** A second instance on the same database. */
const secondShop = new Shop();

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

/** Ways to log out, with status and body of a second logout. */
const WAYS: [string, (at: Shop, opened: SessionCredentials) => Promise<Answer>, number, unknown][] =
  [
    [
      'the session router',
      (at, { key }) => at.rest('POST', '/session/logout', { json: { session_key: key } }),
      401,
      { data: 'Invalid session key' },
    ],
    [
      'POST /api/v2/auth/login by header',
      (at, { key }) => at.rest('POST', '/api/v2/auth/login', { sessionKey: key }),
      401,
      { detail: 'Not authenticated' },
    ],
    [
      'POST /api/v2/auth/login by body',
      (at, { key }) => at.rest('POST', '/api/v2/auth/login', { json: { session_key: key } }),
      401,
      { detail: 'Not authenticated' },
    ],
    [
      'POST /api/v2/auth/login by token',
      (at, { token }) => at.rest('POST', '/api/v2/auth/login', { token }),
      401,
      { detail: 'Could not validate credentials' },
    ],
    [
      'logout of GraphQL',
      (at, { key }) => at.graphql('mutation { logout { ended } }', {}, { sessionKey: key }),
      401,
      UNAUTHENTICATED,
    ],
    [
      'logout of GraphQL by key',
      (at, { key }) => at.graphql(LOGOUT_BY_KEY, { key }),
      200,
      {
        data: null,
        errors: [
          {
            message: 'Invalid session key',
            path: ['logout'],
            extensions: { code: 'UNAUTHENTICATED' },
          },
        ],
      },
    ],
    [
      'logoutEverywhere of GraphQL',
      (at, { key }) =>
        at.graphql('mutation { logoutEverywhere { ended } }', {}, { sessionKey: key }),
      401,
      UNAUTHENTICATED,
    ],
  ];

describe('logout', () => {
  test('S4 twice: 200 with the text of the interface, then 401', async () => {
    const { key } = await openSession(shop);
    const first = await logout(key);
    expect([first.status, first.headers.get('Content-Type'), first.text]).toEqual([
      200,
      'application/json; charset=utf-8',
      '{"data":"Logout successful"}',
    ]);
    expectInvalidKey(await logout(key));
    expectInvalidKey(await logout(key));
    expect(await shop.sql('select sid from session')).toEqual([]);
    expect(leaksIn(shop, [key])).toEqual([]);
  });

  test.each(WAYS)('S4 by %s a session ends once', async (_way, end, status, body) => {
    const opened = await openSession(shop);
    const first = await end(shop, opened);
    expect([first.status, first.body.errors]).toEqual([200, undefined]);
    for (const at of [shop, secondShop]) {
      const again = await end(at, opened);
      expect(again.status).toBe(status);
      expect(again.body).toMatchObject(body as object);
    }
    expect(await shop.sql('select sid from session')).toEqual([]);
  });

  test('S5 of 20 concurrent logouts exactly one succeeds, in every round', async () => {
    const user = await shop.makeUser();
    for (let round = 0; round < sized(200, 10); round++) {
      const { key } = await sessions.open(shop.context(), user, null);
      const answers = await Promise.all(Array.from({ length: 20 }, () => logout(key)));
      const texts = answers.map(({ status, text }) => `${status} ${text}`).toSorted();
      expect(texts).toEqual([
        '200 {"data":"Logout successful"}',
        ...Array<string>(19).fill('401 {"data":"Invalid session key"}'),
      ]);
    }
    expect(await shop.sql('select sid from session')).toEqual([]);
  });

  test('S5 of 20 concurrent logouts at two instances, by five ways, exactly one succeeds', async () => {
    for (let round = 0; round < 20; round++) {
      const opened = await openSession(shop);
      // The last two ways have other responses.
      const ways = [...WAYS.slice(0, 5), ...WAYS.slice(0, 5)].flatMap(([, end]) => [
        end(shop, opened),
        end(secondShop, opened),
      ]);
      const answers = await Promise.all(ways);
      const done = answers.filter(
        ({ status, body }) => status === 200 && body.errors === undefined,
      );
      expect([answers.length, done.length]).toEqual([20, 1]);
    }
  }, 60_000);

  test.each(WAYS)(
    'S6 after %s key and tokens are rejected at once, by REST and GraphQL, on every instance',
    async (_way, end) => {
      const opened = await openSession(shop);
      const bystander = await openSession(shop);
      const sibling = await openSession(shop, opened.user);
      const everywhere = _way.startsWith('logoutEverywhere');
      // Used on both before, so that either may cache it.
      for (const at of [shop, secondShop]) {
        expect(await statusesAt(at, { sessionKey: opened.key })).toEqual([200, 200]);
        expect(await statusesAt(at, { token: opened.token })).toEqual([200, 200]);
      }
      expect((await end(shop, opened)).status).toBe(200);
      for (const at of [secondShop, shop]) {
        const rest = await at.rest('GET', '/users/me/', { sessionKey: opened.key });
        expect([rest.status, rest.headers.get('WWW-Authenticate'), rest.text]).toEqual([
          401,
          'Bearer',
          '{"detail":"Not authenticated"}',
        ]);
        const graphql = await at.graphql(ME, {}, { sessionKey: opened.key });
        expect([graphql.status, graphql.body]).toEqual([401, UNAUTHENTICATED]);
        expect(await statusesAt(at, { token: opened.token })).toEqual([401, 401]);
        const form = { grant_type: 'refresh_token', refresh_token: opened.refreshToken };
        expect((await at.rest('POST', '/token', { form })).status).toBe(401);
        expect(await statusesAt(at, { sessionKey: bystander.key })).toEqual([200, 200]);
        expect(await statusesAt(at, { sessionKey: sibling.key })).toEqual(
          everywhere ? [401, 401] : [200, 200],
        );
      }
    },
  );

  test('S6 a request that starts after the logout response is rejected, whatever else is in progress', async () => {
    const user = await shop.makeUser();
    for (let round = 0; round < 20; round++) {
      const { key } = await sessions.open(shop.context(), user, null);
      const ask = (at: Shop) => fetch(`${at.url}/users/me/`, { headers: { 'X-SESSION-ID': key } });
      const early = Array.from({ length: 10 }, (_, at) => ask(at % 2 === 0 ? shop : secondShop));
      await logout(key);
      const late = await Promise.all(
        Array.from({ length: 10 }, (_, at) => ask(at % 2 === 0 ? shop : secondShop)),
      );
      expect(late.map(({ status }) => status)).toEqual(Array<number>(10).fill(401));
      await Promise.all(early);
    }
  });
});

describe('invalid logout input', () => {
  const VALUES: [string, unknown, object][] = [
    ['missing', undefined, MISSING],
    ['null', null, STRING_TYPE],
    ['a number', 1, STRING_TYPE],
    ['a fraction', 1.5, STRING_TYPE],
    ['true', true, STRING_TYPE],
    ['an empty list', [], STRING_TYPE],
    ['a list with a string', ['x'], STRING_TYPE],
    ['an empty object', {}, STRING_TYPE],
    ['an operator', { $ne: '' }, STRING_TYPE],
    ['another operator', { $gt: '' }, STRING_TYPE],
    ['a raw SQL fragment of an ORM', { __raw: '1=1' }, STRING_TYPE],
    ['an object like a string', { length: 43, toString: 'x' }, STRING_TYPE],
  ];

  test.each(VALUES)(
    'S7 a key that is %s: 422, which echoes nothing, and no session ends',
    async (_what, session_key, error) => {
      const { key } = await openSession(shop);
      const answer = await shop.rest('POST', '/session/logout', { json: { session_key } });
      expect([answer.status, answer.body]).toEqual([422, { detail: [error] }]);
      expect(await statusesAt(shop, { sessionKey: key })).toEqual([200, 200]);
      expect(leaksIn(shop, [key])).toEqual([]);
    },
  );

  test.each(VALUES.filter(([, value]) => value !== undefined))(
    'S7 at POST /api/v2/auth/login, too: %s',
    async (_what, session_key, error) => {
      const { key } = await openSession(shop);
      const answer = await shop.rest('POST', '/api/v2/auth/login', {
        json: { session_key },
        sessionKey: key,
      });
      expect([answer.status, answer.body]).toEqual([422, { detail: [error] }]);
      expect(await statusesAt(shop, { sessionKey: key })).toEqual([200, 200]);
    },
  );

  test.each(
    VALUES.filter(
      ([, value]) => typeof value === 'object' && value !== null && Object.keys(value).length > 0,
    ),
  )('S7 in the query, which is ignored: %s', async (_what, value) => {
    const { key } = await openSession(shop);
    const [[member, text] = ['', '']] = Object.entries(value as object);
    const query = new URLSearchParams({
      [`session_key[${member}]`]: String(text),
      session_key: key,
    }).toString();
    const answer = await shop.rest('POST', `/session/logout?${query}`, { json: {} });
    expect([answer.status, answer.body]).toEqual([422, { detail: [MISSING] }]);
    expect(await statusesAt(shop, { sessionKey: key })).toEqual([200, 200]);
  });

  test('S7 a key under another name or in another place is ignored', async () => {
    const { key } = await openSession(shop);
    for (const json of [
      { sessionKey: key },
      { key },
      { SESSION_KEY: key },
      { data: { session_key: key } },
    ]) {
      expect((await shop.rest('POST', '/session/logout', { json, sessionKey: key })).status).toBe(
        422,
      );
    }
    expect(await statusesAt(shop, { sessionKey: key })).toEqual([200, 200]);
  });
});

describe('POST /api/v2/auth/login as logout', () => {
  test.each<[string, (opened: SessionCredentials) => RequestOptions]>([
    ['in X-SESSION-ID', ({ key }) => ({ sessionKey: key })],
    ['in X-SESSIONID', ({ key }) => ({ headers: { 'X-SESSIONID': key } })],
    ['in both', ({ key }) => ({ headers: { 'X-SESSION-ID': key, 'X-SESSIONID': key } })],
    ['in the header, with an empty body', ({ key }) => ({ sessionKey: key, json: {} })],
    ['in the header, with unknown members', ({ key }) => ({ sessionKey: key, json: { foo: 1 } })],
    ['in the body', ({ key }) => ({ json: { session_key: key } })],
    ['by a token of its session', ({ token }) => ({ token })],
  ])('S18 with a live key %s: 200, under both member names', async (_where, request) => {
    const opened = await openSession(shop);
    const other = await openSession(shop, opened.user);
    const answer = await shop.rest('POST', '/api/v2/auth/login', request(opened));
    expect([answer.status, answer.text]).toEqual([200, BOTH]);
    expect(await statusesAt(secondShop, { sessionKey: opened.key })).toEqual([401, 401]);
    expect(await statusesAt(secondShop, { sessionKey: other.key })).toEqual([200, 200]);
  });

  test.each<
    [string, (dead: SessionCredentials, live: SessionCredentials) => RequestOptions, string]
  >([
    ['without credentials', () => ({}), 'Not authenticated'],
    ['with an empty body', () => ({ json: {} }), 'Not authenticated'],
    ['with a dead key in X-SESSION-ID', ({ key }) => ({ sessionKey: key }), 'Not authenticated'],
    [
      'with a dead key in X-SESSIONID',
      ({ key }) => ({ headers: { 'X-SESSIONID': key } }),
      'Not authenticated',
    ],
    [
      'with a dead key in the body',
      ({ key }) => ({ json: { session_key: key } }),
      'Not authenticated',
    ],
    ['with an unknown key', () => ({ sessionKey: newSecretKey() }), 'Not authenticated'],
    [
      'with two keys, one of them live',
      (dead, live) => ({ headers: { 'X-SESSION-ID': dead.key, 'X-SESSIONID': live.key } }),
      'Not authenticated',
    ],
    ['with a token without a session', (_dead, { user }) => ({ as: user }), 'Not authenticated'],
    [
      'with a token of a dead session',
      ({ token }) => ({ token }),
      'Could not validate credentials',
    ],
    ['with an invalid token', () => ({ token: 'x' }), 'Could not validate credentials'],
    [
      'with a live key in a cookie',
      (_dead, { key }) => ({ headers: { Cookie: `session_key=${key}` } }),
      'Not authenticated',
    ],
    [
      'with Basic',
      (_dead, { user }) => ({
        headers: { Authorization: `Basic ${btoa(`${user.username}:${PASSWORD}`)}` },
      }),
      'Not authenticated',
    ],
  ])('S18 %s: 401, and no session ends', async (_what, request, detail) => {
    const [dead, live] = [await openSession(shop), await openSession(shop)];
    await logout(dead.key);
    const answer = await shop.rest('POST', '/api/v2/auth/login', request(dead, live));
    expect([answer.status, answer.text]).toEqual([401, JSON.stringify({ detail })]);
    expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer\b/);
    expect(await statusesAt(shop, { sessionKey: live.key })).toEqual([200, 200]);
  });
});

function logout(key: string): Promise<Answer> {
  return shop.rest('POST', '/session/logout', { json: { session_key: key } });
}

function expectInvalidKey({ status, text }: Answer): void {
  expect([status, text]).toEqual([401, '{"data":"Invalid session key"}']);
}

/** Returns the status of both APIs for these credentials. */
async function statusesAt(at: Shop, credentials: RequestOptions): Promise<number[]> {
  const answers = [
    await at.rest('GET', '/users/me/', credentials),
    await at.graphql(ME, {}, credentials),
  ];
  return answers.map(({ status }) => status);
}
