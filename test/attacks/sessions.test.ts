import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { newSecretKey } from '../../src/core/secret-key.ts';
import { inTransaction } from '../../src/request/context.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as auth from '../../src/features/auth/auth.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { leaksIn, ME } from '../support/forge.ts';
import { LOGIN_ENDPOINTS, openSession, type SessionCredentials } from '../support/logins.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { sized } from '../support/sized.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const MAX_SESSIONS = 50;
const KEY = /^[A-Za-z0-9_-]{43}$/;
const UNAUTHENTICATED = {
  errors: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }],
};

const shop = useShop();
const brief = useShop({ SESSION_IDLE_DAYS: '2', SESSION_LIFETIME_DAYS: '3' });
/** A second instance on the same database. */
const secondShop = new Shop();
beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

const keyIn = ({ body }: Answer): string | undefined =>
  body.session_key ?? body.data?.login?.sessionKey;
const logout = (key: unknown, at = shop): Promise<Answer> =>
  at.rest('POST', '/session/logout', { json: { session_key: key } });
const refresh = (refresh_token: string): Promise<Answer> =>
  shop.rest('POST', '/token', { form: { grant_type: 'refresh_token', refresh_token } });

/** Returns the status of both APIs for these credentials. */
async function statusesOf(credentials: RequestOptions, at = shop): Promise<number[]> {
  const answers = [
    await at.rest('GET', '/users/me/', credentials),
    await at.graphql(ME, {}, credentials),
  ];
  return answers.map(({ status }) => status);
}
const SERVED = [200, 200];
const REJECTED = [401, 401];

describe('keys', () => {
  test('S1 10,000 keys of sessions or APIs differ, also in their first and last 12 characters, and no bit of 256 is biased', () => {
    const keys = Array.from({ length: 10_000 }, newSecretKey);
    expect(keys.filter((key) => !KEY.test(key))).toEqual([]);
    // 72 random bits each: a collision occurs once in 10^14 runs.
    for (const part of [(key: string) => key.slice(0, 12), (key: string) => key.slice(-12)])
      expect(new Set(keys.map(part)).size).toBe(10_000);
    const ones = Array<number>(256).fill(0);
    for (const key of keys) {
      const bytes = Buffer.from(key, 'base64url');
      for (let bit = 0; bit < 256; bit++)
        ones[bit] = (ones[bit] ?? 0) + (((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1);
    }
    // Eight standard deviations of 50 around the half.
    expect(ones.filter((count) => Math.abs(count - 5_000) > 400)).toEqual([]);
  });

  test('S2 every login returns a new key; the database holds its SHA-256, and no key, token or password', async () => {
    const canary = 'canary-password-9f3a';
    const { username } = await shop.makeUser({ username: 'canary-user', password: canary });
    const secrets = [canary];
    for (const [, enter] of LOGIN_ENDPOINTS) {
      const answer = await enter(shop, username, canary);
      const { access_token: token } = answer.body;
      secrets.push(keyIn(answer) ?? String(token).split('.')[2] ?? '');
    }
    expect(new Set(secrets).size).toBe(LOGIN_ENDPOINTS.length + 1);
    const dump = await contentOfDatabase();
    expect(dump).toContain('canary-user');
    for (const secret of secrets) {
      expect(dump).not.toContain(secret);
      expect(dump).not.toContain(Buffer.from(secret).toString('hex'));
    }
    // After the password and the signatures of two tokens come the keys.
    for (const key of secrets.slice(3)) {
      expect(key).toMatch(KEY);
      expect(dump).toContain(createHash('sha256').update(key).digest('hex'));
    }
    expect(leaksIn(shop, secrets)).toEqual([]);
  });

  test.each(LOGIN_ENDPOINTS.slice(2))(
    'S3 %s ignores a key that the client sends, and returns a new one',
    async (_name, enter) => {
      const user = await shop.makeUser();
      const { key: sent } = await openSession(shop);
      for (const headers of [
        { 'X-SESSION-ID': sent, 'X-SESSIONID': sent },
        { Cookie: `session_key=${sent}; X-SESSION-ID=${sent}` },
      ]) {
        const key = String(keyIn(await enter(shop, user.username, PASSWORD, { headers })));
        expect(key).not.toBe(sent);
        const { body } = await shop.rest('GET', '/users/me/', { sessionKey: key });
        expect(body.username).toBe(user.username);
      }
    },
  );

  const sameBytes = (key: string): string => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    return key.slice(0, -1) + alphabet.charAt(alphabet.indexOf(key.slice(-1)) + 1);
  };
  test.each<[string, (key: string) => string]>([
    ['S8 empty', () => ''],
    ['S8 of 10,000 characters', () => 'x'.repeat(10_000)],
    ['S8 with a NUL behind it', (key) => `${key}\0`],
    ['S8 of SQL', () => "' or '1'='1"],
    ['S8 unknown', () => newSecretKey()],
    ['S8 equal to the stored hash', (key) => createHash('sha256').update(key).digest('hex')],
    ['S9 in upper case', (key) => key.toUpperCase()],
    ['S9 of the same bytes with another last character', sameBytes],
    ['S9 without its last character', (key) => key.slice(0, -1)],
  ])('%s: a key is rejected everywhere, and its session continues', async (_what, change) => {
    const { key } = await openSession(shop);
    const changed = change(key);
    expect(await logout(changed)).toMatchObject({
      status: 401,
      text: '{"data":"Invalid session key"}',
    });
    const v2 = await shop.rest('POST', '/api/v2/auth/login', { json: { session_key: changed } });
    expect([v2.status, v2.text]).toEqual([401, '{"detail":"Not authenticated"}']);
    const graphql = await shop.graphql(
      'mutation ($key: String) { logout(sessionKey: $key) { ended } }',
      { key: changed },
      { sessionKey: key },
    );
    expect(graphql.body.errors).toMatchObject([{ message: 'Invalid session key' }]);
    expect(await statusesOf({ sessionKey: key })).toEqual(SERVED);
    expect(leaksIn(shop, [key, changed])).toEqual([]);
  });
});

/** Ways to log out, with status and body of a second logout. */
const WAYS: [string, (at: Shop, opened: SessionCredentials) => Promise<Answer>, number, object][] =
  [
    ['the session router', (at, { key }) => logout(key, at), 401, { data: 'Invalid session key' }],
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
      (at, { key }) =>
        at.graphql('mutation ($key: String) { logout(sessionKey: $key) { ended } }', { key }),
      200,
      { data: null, errors: [{ message: 'Invalid session key' }] },
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
  test.each(WAYS)(
    'S6 by %s a session ends once, with all of its credentials',
    async (way, end, status, body) => {
      const opened = await openSession(shop);
      const [bystander, sibling] = [await openSession(shop), await openSession(shop, opened.user)];
      const first = await end(shop, opened);
      expect([first.status, first.body.errors]).toEqual([200, undefined]);
      for (const used of [{ sessionKey: opened.key }, { token: opened.token }])
        expect(await statusesOf(used)).toEqual(REJECTED);
      expect(await statusesOf({ sessionKey: bystander.key })).toEqual(SERVED);
      expect(await statusesOf({ sessionKey: sibling.key })).toEqual(
        way.startsWith('logoutEverywhere') ? REJECTED : SERVED,
      );
      const again = await end(secondShop, opened);
      expect(again.status).toBe(status);
      expect(again.body).toMatchObject(body);
      expect((await refresh(opened.refreshToken)).status).toBe(401);
    },
  );

  test('S5 of 20 concurrent logouts at two instances, by five ways, exactly one succeeds', async () => {
    for (let round = 0; round < sized(100, 5); round++) {
      const opened = await openSession(shop);
      // The last two ways have other responses.
      const answers = await Promise.all(
        [...WAYS.slice(0, 5), ...WAYS.slice(0, 5)].flatMap(([, end]) => [
          end(shop, opened),
          end(secondShop, opened),
        ]),
      );
      const done = answers.filter(({ status, body }) => status === 200 && !body.errors);
      expect([answers.length, done.length]).toEqual([20, 1]);
    }
  });

  test('S6 a request that starts after the logout response is rejected, whatever else is in progress', async () => {
    const user = await shop.makeUser();
    for (let round = 0; round < 10; round++) {
      const { key } = await sessions.open(shop.context(), user, null);
      const send = () =>
        Array.from({ length: 10 }, (_, at) =>
          (at % 2 ? shop : secondShop).rest('GET', '/users/me/', { sessionKey: key }),
        );
      const early = send();
      await logout(key);
      expect(new Set((await Promise.all(send())).map(({ status }) => status))).toEqual(
        new Set([401]),
      );
      await Promise.all(early);
    }
  });

  test.each([undefined, null, 1, ['x'], { $ne: '' }])(
    'S7 the key %j is 422, and no session ends',
    async (session_key) => {
      const { key } = await openSession(shop);
      const answer = await logout(session_key);
      const type = session_key === undefined ? 'missing' : 'string_type';
      expect([answer.status, answer.body.detail]).toMatchObject([
        422,
        [{ type, loc: ['body', 'session_key'] }],
      ]);
      if (session_key !== undefined)
        expect(
          (
            await shop.rest('POST', '/api/v2/auth/login', {
              json: { session_key },
              sessionKey: key,
            })
          ).status,
        ).toBe(422);
      expect(await statusesOf({ sessionKey: key })).toEqual(SERVED);
    },
  );

  test.each<[string, (opened: SessionCredentials) => RequestOptions]>([
    ['in the header, with an empty body', ({ key }) => ({ sessionKey: key, json: {} })],
    ['in the body, beside the key of another', ({ key }) => ({ json: { session_key: key } })],
  ])(
    'S18 POST /api/v2/auth/login with a live key %s: 200, under both names',
    async (what, request) => {
      const [opened, other] = [await openSession(shop), await openSession(shop)];
      const answer = await shop.rest('POST', '/api/v2/auth/login', {
        ...(what.includes('another') && { sessionKey: other.key }),
        ...request(opened),
      });
      expect([answer.status, answer.text]).toEqual([
        200,
        '{"detail":"Logout successful","data":"Logout successful"}',
      ]);
      expect(await statusesOf({ sessionKey: opened.key }, secondShop)).toEqual(REJECTED);
      expect(await statusesOf({ sessionKey: other.key }, secondShop)).toEqual(SERVED);
    },
  );

  test.each<[string, (dead: SessionCredentials, live: SessionCredentials) => RequestOptions]>([
    [
      'two keys',
      (dead, live) => ({ headers: { 'X-SESSION-ID': dead.key, 'X-SESSIONID': live.key } }),
    ],
    ['a token without a session', (_dead, { user }) => ({ as: user })],
  ])('S18 POST /api/v2/auth/login with %s: 401, and no session ends', async (_what, request) => {
    const [dead, live] = [await openSession(shop), await openSession(shop)];
    await logout(dead.key);
    const answer = await shop.rest('POST', '/api/v2/auth/login', request(dead, live));
    expect([answer.status, answer.body]).toEqual([401, { detail: 'Not authenticated' }]);
    expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer\b/);
    expect(await statusesOf({ sessionKey: live.key })).toEqual(SERVED);
  });
});

describe('time', () => {
  test.each<[string, number[], number]>([
    ['14 days idle', [14 * DAY], 401],
    ['used after 13 days, and 14 days idle then', [13 * DAY, 14 * DAY], 401],
    [
      'used for 90 days less a minute',
      [...Array<number>(8).fill(10 * DAY), 10 * DAY - MINUTE],
      200,
    ],
    ['used every 10 days, for 90 days', Array<number>(9).fill(10 * DAY), 401],
  ])('S13 a session %s', async (_what, steps, status) => {
    const { key, token, refreshToken } = await openSession(shop);
    for (const step of steps.slice(0, -1)) {
      shop.advanceClock(step);
      expect(await statusesOf({ sessionKey: key })).toEqual(SERVED);
    }
    shop.advanceClock(steps.at(-1) ?? 0);
    expect(await statusesOf({ sessionKey: key })).toEqual([status, status]);
    expect(await statusesOf({ token })).toEqual(REJECTED);
    if (status === 401) {
      // Its row still exists.
      expect((await logout(key)).status).toBe(401);
      expect((await refresh(refreshToken)).status).toBe(401);
    }
    expect(await auth.sweep(shop.context())).toBe(status === 401 ? 1 : 0);
  });

  test('S13 SESSION_IDLE_DAYS and SESSION_LIFETIME_DAYS set these times', async () => {
    const user = await brief.makeUser();
    const [used, idle] = [await openSession(brief, user), await openSession(brief, user)];
    const statuses = ({ key }: SessionCredentials) => statusesOf({ sessionKey: key }, brief);
    brief.advanceClock(DAY);
    expect(await statuses(used)).toEqual(SERVED);
    brief.advanceClock(DAY);
    expect([await statuses(idle), await statuses(used)]).toEqual([REJECTED, SERVED]);
    brief.advanceClock(DAY);
    expect(await statuses(used)).toEqual(REJECTED);
  });

  test('S13 rejected requests do not extend a session', async () => {
    const opened = await openSession(shop);
    await accounts.setDisabled(secondShop.context(), opened.user.username, true);
    const before = await shop.sql('select last_seen_at, expires_at from session');
    shop.advanceClock(13 * DAY);
    expect(await statusesOf({ sessionKey: opened.key })).toEqual([400, 400]);
    expect(await shop.sql('select last_seen_at, expires_at from session')).toEqual(before);
  });
});

describe('users', () => {
  test('S14 disabling ends all sessions in the same transaction; deleting deletes them', async () => {
    const { user } = await openSession(shop);
    const bystander = await openSession(shop);
    const other = await openSession(shop, user);
    await accounts.setDisabled(shop.context(), user.username, true);
    expect(
      await shop.sql(`select ended_at is not null as ended, session.xmin = "user".xmin as same
        from session join "user" on pk = user_pk where pk = ${user.pk}`),
    ).toEqual([
      { ended: true, same: true },
      { ended: true, same: true },
    ]);
    await accounts.setDisabled(shop.context(), user.username, false);
    expect((await refresh(other.refreshToken)).status).toBe(401);
    expect(await sessions.listOf(shop.context(), user.pk)).toEqual([]);
    await shop.sql(`delete from "user" where pk = ${user.pk}`);
    expect(await shop.sql('select user_pk::int from session')).toEqual([
      { user_pk: bystander.user.pk },
    ]);
  });

  test('S14 a login that runs while its user is disabled leaves no live session', async () => {
    const user = await shop.makeUser();
    for (let round = 0; round < 10; round++) {
      const login = shop.rest('POST', '/session/login', {
        json: { username: user.username, password: PASSWORD },
      });
      // A little later each time, from before the hash is compared to after it.
      for (let turn = 0; turn < round * 3; turn++) await shop.sql('select 1');
      await accounts.setDisabled(secondShop.context(), user.username, true);
      expect([200, 401]).toContain((await login).status);
      expect(await shop.sql('select sid from session where ended_at is null')).toEqual([]);
      await accounts.setDisabled(secondShop.context(), user.username, false);
    }
  });

  test('S15 of many logins of one user only the latest 50 sessions are stored', async () => {
    const user = await shop.makeUser();
    const keys: string[] = [];
    // In one transaction, because separate commits do not matter here.
    await inTransaction(shop.context(), async (tx) => {
      for (let opened = 0; opened < 60; opened++) {
        shop.advanceClock(1);
        keys.push((await sessions.open(tx, user, null)).key);
      }
    });
    expect(await countOf(user)).toBe(MAX_SESSIONS);
    for (const [at, status] of [
      [-MAX_SESSIONS, 200],
      [-MAX_SESSIONS - 1, 401],
    ] as const)
      expect(await statusesOf({ sessionKey: String(keys.at(at)) })).toEqual([status, status]);
    for (const [, enter] of LOGIN_ENDPOINTS) {
      shop.advanceClock(1);
      expect((await enter(shop, user.username, PASSWORD)).status).toBe(200);
      expect(await countOf(user)).toBe(MAX_SESSIONS);
    }
  });

  test('S15 concurrent logins on two instances leave 50 sessions, the latest among them', async () => {
    const user = await shop.makeUser();
    let latest: { key: string }[] = [];
    for (let round = 0; round < 2; round++)
      latest = await Promise.all(
        Array.from({ length: 40 }, (_, at) =>
          inTransaction((at % 2 ? shop : secondShop).context(), (tx) =>
            sessions.open(tx, user, null),
          ),
        ),
      );
    expect(await countOf(user)).toBe(MAX_SESSIONS);
    for (const { key } of latest) expect(await statusesOf({ sessionKey: key })).toEqual(SERVED);
  });
});

describe('responses with a key or a token', () => {
  test.each(LOGIN_ENDPOINTS)('S16 %s: no-store, and no cookie', async (_name, enter) => {
    const { username } = await shop.makeUser();
    for (const [name, password] of [
      [username, PASSWORD],
      [username, 'wrong'],
      ['nobody', 'wrong'],
    ] as const)
      expectNotStored(await enter(shop, name, password));
  });

  test('S16 refresh, logout and unreadable bodies: no-store, and no cookie', async () => {
    const { key, refreshToken } = await openSession(shop);
    const headers = { 'Content-Type': 'application/json' };
    const answers = [
      await refresh(refreshToken),
      await refresh('x'),
      await logout(key),
      await logout(key),
      await shop.rest('POST', '/session/login', { body: '{', headers }),
      await shop.rest('POST', '/api/v2/auth/login', { sessionKey: key }),
      await shop.graphql('mutation { refresh(refreshToken: "x") { accessToken } }'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 200, 401, 400, 401, 200]);
    for (const answer of answers) expectNotStored(answer);
  });
});

async function countOf(user: User): Promise<number> {
  return (await shop.sql(`select sid from session where user_pk = ${user.pk}`)).length;
}

function expectNotStored({ headers }: Answer): void {
  expect(headers.get('Cache-Control')).toBe('no-store');
  expect(headers.getSetCookie()).toEqual([]);
  expect(headers.get('Access-Control-Allow-Credentials')).toBeNull();
}

/** Returns the rows of all tables. */
async function contentOfDatabase(): Promise<string> {
  const tables = await shop.sql(
    `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname <> 'pg_catalog'`,
  );
  const rows = await Promise.all(
    tables.map(({ name }) => shop.sql(`select rows::text as row from ${String(name)} as rows`)),
  );
  return JSON.stringify(rows);
}
