import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/auth/accounts.service.ts';
import { newKey } from '../../src/kit/random-key.ts';
import * as sessions from '../../src/auth/session.service.ts';
import { createAccessToken, createRefreshToken } from '../../src/auth/token.ts';
import { features } from '../../src/features.ts';
import { inTransaction } from '../../src/kit/context.ts';
import type { User } from '../../src/users/user.entity.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const LOGIN = `mutation ($username: String!, $password: String!) {
  login(username: $username, password: $password) { sessionKey accessToken refreshToken }
}`;
const ME = '{ me { username } }';

// What is noted of sessions is kept for longer than any test lets pass.
const shop = useShop({ CHANGES_KEPT_DAYS: '3650' });
/** A second instance of the app on the same database. */
const twin = new Shop();

beforeAll(() => twin.start());
afterAll(() => twin.stop());

describe('the key', () => {
  test('S1 256 random bits in base64url: of 10,000 none is like another, nor begins like it', () => {
    const keys = Array.from({ length: 10_000 }, newKey);
    expect(keys.filter((key) => !/^[A-Za-z0-9_-]{43}$/.test(key))).toEqual([]);
    expect(new Set(keys.map((key) => Buffer.from(key, 'base64url').toString('hex'))).size).toBe(10_000);
    expect(new Set(keys.map((key) => key.slice(0, 12))).size).toBe(10_000);
  });

  test.each(doors())('S1 %s answers such a key, another each time', async (_door, login) => {
    const user = await shop.makeUser();
    const [one, two] = [keyIn(await login(user)), keyIn(await login(user))];
    expect(one).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(two).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(two).not.toBe(one);
  });

  test.each(doors())('S2 after %s only its SHA-256 is stored', async (_door, login) => {
    const key = keyIn(await login(await shop.makeUser()));
    const dump = await dumpOfAllTables();
    expect(dump).toContain(createHash('sha256').update(key).digest('hex'));
    expect(dump).not.toContain(key);
    expect(dump).not.toContain(Buffer.from(key).toString('hex'));
    expect(dump).not.toContain(Buffer.from(key, 'base64url').toString('hex'));
  });

  test.each<[string, (key: string) => RequestOptions]>([
    ['the body', (session_key) => ({ json: { session_key, sessionKey: session_key, sid: session_key } })],
    ['a header', (key) => ({ headers: { 'X-SESSION-ID': key, 'X-SESSIONID': key } })],
    ['a cookie', (key) => ({ headers: { Cookie: `session_key=${key}; sessionid=${key}` } })],
  ])('S3 a key that the client sends in %s at login is not taken', async (_where, request) => {
    const { username } = await shop.makeUser();
    const sent = newKey();
    const { json, headers } = request(sent);
    const answer = await shop.rest('POST', '/session/login', {
      json: { username, password: PASSWORD, ...(json as object | undefined) },
      ...(headers && { headers }),
    });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ session_key: expect.any(String) });
    expect(answer.body.session_key).not.toBe(sent);
    expectInvalidKey(await logout(sent));
    expect((await logout(answer.body.session_key)).status).toBe(200);
  });

  test('S3 a login inside a session opens another one and leaves the first', async () => {
    const { username } = await shop.makeUser();
    const first = keyIn(await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } }));
    const second = keyIn(await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD }, sessionKey: first }));
    expect(second).not.toBe(first);
    expect(await statusWith(first)).toBe(200);
    expect(await statusWith(second)).toBe(200);
  });
});

describe('logout', () => {
  test('S4 a session ends once', async () => {
    const { key } = await open();
    const first = await logout(key);
    expect([first.status, first.text]).toEqual([200, '{"data":"Logout successful"}']);
    expectInvalidKey(await logout(key));
    expect(await shop.sql('select * from session')).toEqual([]);
  });

  test('S5 of twenty at once exactly one ends it', async () => {
    const user = await shop.makeUser();
    for (let round = 0; round < 10; round++) {
      const { key } = await open(user);
      const answers = await Promise.all(Array.from({ length: 20 }, () => logout(key)));
      expect(countsByStatus(answers)).toEqual({ 200: 1, 401: 19 });
    }
  });

  test('S5 of many ways out at once exactly one ends it', async () => {
    const { key } = await open();
    const answers = await Promise.all([
      ...Array.from({ length: 5 }, () => logout(key)),
      ...Array.from({ length: 5 }, () => shop.rest('POST', '/api/v2/auth/login', { sessionKey: key })),
      ...Array.from({ length: 5 }, () => twin.rest('POST', '/session/logout', { json: { session_key: key } })),
    ]);
    expect(countsByStatus(answers)).toEqual({ 200: 1, 401: 14 });
  });

  test('S6 an ended key is refused at once, by REST and GraphQL, on every instance', async () => {
    const { key } = await open();
    expect([await statusWith(key), await statusWith(key, twin)]).toEqual([200, 200]);
    await logout(key);
    for (const at of [shop, twin]) {
      const rest = await at.rest('GET', '/users/me/', { sessionKey: key });
      expect([rest.status, rest.headers.get('WWW-Authenticate'), rest.text]).toEqual([401, 'Bearer', '{"detail":"Not authenticated"}']);
      const graphql = await at.graphql(ME, {}, { sessionKey: key });
      expect([graphql.status, graphql.body]).toEqual([
        401,
        { errors: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }] },
      ]);
    }
  });

  test.each<[string, (key: string) => Promise<Answer>]>([
    ['the session router', (key) => shop.rest('POST', '/session/logout', { json: { session_key: key } })],
    ['POST /api/v2/auth/login', (key) => shop.rest('POST', '/api/v2/auth/login', { sessionKey: key })],
    ['logout of GraphQL', (key) => shop.graphql('mutation { logout { ended } }', {}, { sessionKey: key })],
    ['logout of GraphQL by key', (key) => shop.graphql('mutation ($key: String) { logout(sessionKey: $key) { ended } }', { key })],
    ['logoutEverywhere of GraphQL', (key) => shop.graphql('mutation { logoutEverywhere { ended } }', {}, { sessionKey: key })],
  ])('S6 with the session, %s ends its access and refresh tokens on every instance', async (_way, end) => {
    const { user, session, key } = await open();
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    const refresh_token = createRefreshToken(shop.context(), { sid: session.sid, generation: 0 }, session.expiresAt);
    expect((await twin.rest('GET', '/users/me/', { token })).status).toBe(200);

    const ended = await end(key);

    expect([ended.status, ended.body.errors]).toEqual([200, undefined]);
    const bearer = await twin.rest('GET', '/users/me/', { token });
    expect([bearer.status, bearer.body]).toEqual([401, { detail: 'Could not validate credentials' }]);
    const refreshed = await twin.rest('POST', '/token', { form: { grant_type: 'refresh_token', refresh_token } });
    expect([refreshed.status, refreshed.body]).toEqual([401, { detail: 'Could not validate credentials' }]);
  });

  test('S6 it leaves the other sessions of the user', async () => {
    const { user, key } = await open();
    const other = await open(user);
    await logout(key);
    expect(await statusWith(other.key)).toBe(200);
  });

  test.each([
    ['missing', {}, 'missing', 'Field required'],
    ['null', { session_key: null }, 'string_type', 'Input should be a valid string'],
    ['a number', { session_key: 1 }, 'string_type', 'Input should be a valid string'],
    ['a list', { session_key: [] }, 'string_type', 'Input should be a valid string'],
    ['an object', { session_key: { $ne: '' } }, 'string_type', 'Input should be a valid string'],
  ])('S7 a key that is %s is bad input', async (_what, json, type, msg) => {
    const { key } = await open();
    const answer = await shop.rest('POST', '/session/logout', { json });
    expect([answer.status, answer.body]).toEqual([422, { detail: [{ type, loc: ['body', 'session_key'], msg }] }]);
    expect(await statusWith(key)).toBe(200);
  });

  test.each<[string, (key: string) => string]>([
    ['S8 empty', () => ''],
    ['S8 of 600 characters', () => 'x'.repeat(600)],
    ['S8 with a NUL', (key) => `${key}\0`],
    ['S8 of emoji', () => '🔑🔑🔑'],
    ['S8 of SQL', () => "' or '1'='1"],
    ['S8 somebody might have', () => newKey()],
    ['S8 made of the hash that is stored', (key) => createHash('sha256').update(key).digest('hex')],
    ['S9 in upper case', (key) => key.toUpperCase()],
    ['S9 with space around it', (key) => ` ${key} `],
    ['S9 with a line break', (key) => `${key}\n`],
    ['S9 percent-encoded', (key) => [...key].map((sign) => `%${sign.charCodeAt(0).toString(16)}`).join('')],
    ['S9 padded', (key) => `${key}=`],
    ['S9 cut', (key) => key.slice(0, -1)],
  ])('%s: the key is of no session', async (_what, change) => {
    const { key } = await open();
    expectInvalidKey(await logout(change(key)));
    expect(await statusWith(key)).toBe(200);
  });

  test('S8 1 MB are too much', async () => {
    const answer = await logout('x'.repeat(1_048_576));
    expect([answer.status, answer.body]).toEqual([413, { data: 'The request is too large' }]);
  });
});

describe('the headers', () => {
  test.each<[string, (key: string, other: string) => Record<string, string>, number]>([
    ['X-SESSION-ID alone', (key) => ({ 'X-SESSION-ID': key }), 200],
    ['X-SESSIONID alone', (key) => ({ 'X-SESSIONID': key }), 200],
    ['both, the same', (key) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': key }), 200],
    ['both, different, each of a live session', (key, other) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': other }), 401],
    ['both, the second wrong', (key) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': 'x' }), 401],
    ['both, the first wrong', (key) => ({ 'X-SESSION-ID': 'x', 'X-SESSIONID': key }), 401],
    ['both, the second empty', (key) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': '' }), 401],
    ['S9 a key in upper case', (key) => ({ 'X-SESSION-ID': key.toUpperCase() }), 401],
    ['S9 a key percent-encoded', (key) => ({ 'X-SESSION-ID': encodeURIComponent(`"${key}"`) }), 401],
    ['an empty key', () => ({ 'X-SESSION-ID': '' }), 401],
  ])('S10 %s', async (_what, headers, status) => {
    const { user, key } = await open();
    const other = await open(user);
    const request = { headers: headers(key, other.key) };
    const rest = await shop.rest('GET', '/users/me/', request);
    const graphql = await shop.graphql(ME, {}, request);
    expect([rest.status, graphql.status]).toEqual([status, status]);
    expect(rest.body).toMatchObject(status === 200 ? { username: user.username } : { detail: 'Not authenticated' });
    expect(graphql.body).toEqual(
      status === 200
        ? { data: { me: { username: user.username } } }
        : { errors: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }] },
    );
  });

  test('S10 one header given twice with two keys is of no session', async () => {
    const [one, two] = [await open(), await open()];
    const answer = await shop.raw(
      `GET /users/me/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nX-SESSION-ID: ${one.key}\r\nX-SESSION-ID: ${two.key}\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 401 Unauthorized\r\n/);
  });

  test.each<[string, (user: User) => string, string]>([
    ['another user', (user) => `Bearer ${shop.tokenOf(user)}`, 'served as that user'],
    ['nobody', () => 'Bearer x', 'Could not validate credentials'],
    ['a scheme that is not ours', () => 'Basic dXNlcjp4', 'Not authenticated'],
  ])('Decisions, which credential: where Authorization names %s, the session key does not count', async (_who, header, outcome) => {
    const { key } = await open();
    const user = await shop.makeUser();
    const answer = await shop.rest('GET', '/users/me/', { sessionKey: key, headers: { Authorization: header(user) } });
    expect([answer.status, answer.body.detail ?? answer.body.username]).toEqual(
      outcome === 'served as that user' ? [200, user.username] : [401, outcome],
    );
  });
});

describe('time', () => {
  test('S13 a session ends 14 days after it was last used', async () => {
    const { key } = await open();
    shop.pass(14 * DAY - MINUTE);
    expect(await statusWith(key)).toBe(200);
    shop.pass(14 * DAY - MINUTE);
    expect(await statusWith(key)).toBe(200);
    shop.pass(14 * DAY);
    expect(await statusWith(key)).toBe(401);
    expectInvalidKey(await logout(key));
  });

  test('S13 a session ends 90 days after it was opened, however much it is used', async () => {
    const { key } = await open();
    for (let day = 10; day < 90; day += 10) {
      shop.pass(10 * DAY);
      expect(await statusWith(key)).toBe(200);
    }
    shop.pass(10 * DAY - MINUTE);
    expect(await statusWith(key)).toBe(200);
    shop.pass(MINUTE);
    expect(await statusWith(key)).toBe(401);
  });

  test('S13 its tokens end with it, by time, too', async () => {
    const { user, session } = await open();
    shop.pass(14 * DAY);
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(401);
  });

  test('S13 both lifetimes can be set', async () => {
    const short = await new Shop({ SESSION_IDLE_DAYS: '1', SESSION_LIFETIME_DAYS: '2' }).start();
    try {
      const { key } = await sessions.open(short.context(), await shop.makeUser(), null);
      const { key: idle } = await sessions.open(short.context(), await shop.makeUser(), null);
      short.pass(DAY - MINUTE);
      expect(await statusWith(key, short)).toBe(200);
      short.pass(MINUTE);
      expect([await statusWith(key, short), await statusWith(idle, short)]).toEqual([200, 401]);
      short.pass(DAY);
      expect(await statusWith(key, short)).toBe(401);
    } finally {
      await short.stop();
    }
  });

  test('S13 the sweep deletes what has been expired for a minute, so that who listens is told why it ended, and only that', async () => {
    const user = await shop.makeUser();
    await open(user);
    shop.pass(14 * DAY - MINUTE);
    const { session } = await open(user);
    for (const expected of [0, 0, 1]) {
      expect(await sweep()).toBe(expected);
      shop.pass(MINUTE);
    }
    expect(await shop.sql('select sid from session')).toEqual([{ sid: session.sid }]);
  });

  test('Decisions, session key: a use is written down at most once a minute', async () => {
    const { key, session } = await open();
    shop.pass(50_000);
    await statusWith(key);
    expect(await seenAt()).toEqual([session.lastSeenAt.getTime(), session.expiresAt.getTime()]);
    shop.pass(10_000);
    const before = shop.now().getTime();
    await statusWith(key);
    const [seen = 0, expires = 0] = await seenAt();
    expect(seen).toBeGreaterThanOrEqual(before);
    expect(seen).toBeLessThanOrEqual(shop.now().getTime());
    expect(expires - seen).toBe(14 * DAY);
  });

  test('Decisions, session key: a bearer token of the session counts as its use', async () => {
    const { user, session } = await open();
    shop.pass(13 * DAY);
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(200);
    const [seen = 0] = await seenAt();
    expect(seen - session.createdAt.getTime()).toBeGreaterThanOrEqual(13 * DAY);
  });

  test('Decisions, session key: a refused request is no use', async () => {
    const { user, session, key } = await open();
    await shop.sql(`update "user" set disabled = true where pk = ${user.pk}`);
    shop.pass(DAY);
    expect(await statusWith(key)).toBe(400);
    expect(await seenAt()).toEqual([session.lastSeenAt.getTime(), session.expiresAt.getTime()]);
  });
});

describe('the end of a user', () => {
  test('S14 disabling ends all sessions in the same transaction: 400 at once, and 401 once enabled again', async () => {
    const { user, key } = await open();
    const other = await open(user);
    const bystander = await open();
    await accounts.disable(shop.context(), user.username);
    const [{ same }] = (await shop.sql(`
      select bool_and(session.ended_at is not null and session.xmin = "user".xmin) as same
      from session join "user" on pk = user_pk where pk = ${user.pk}`)) as [{ same: boolean }];
    expect(same).toBe(true);
    for (const at of [shop, twin]) {
      const answer = await at.rest('GET', '/users/me/', { sessionKey: key });
      expect([answer.status, answer.body]).toEqual([400, { detail: 'Inactive user' }]);
      const graphql = await at.graphql(ME, {}, { sessionKey: other.key });
      expect([graphql.status, graphql.body]).toEqual([
        400,
        { errors: [{ message: 'Inactive user', extensions: { code: 'INACTIVE_USER' } }] },
      ]);
    }
    expect(await statusWith(bystander.key)).toBe(200);
    await accounts.enable(shop.context(), user.username);
    expect([await statusWith(key), await statusWith(other.key)]).toEqual([401, 401]);
  });

  test('S14 deleting a user deletes the sessions', async () => {
    const { user, session, key } = await open();
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    await shop.sql(`delete from "user" where pk = ${user.pk}`);
    expect(await shop.sql('select * from session')).toEqual([]);
    expect(await statusWith(key)).toBe(401);
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(401);
    expectInvalidKey(await logout(key));
  });

  test('Decisions, tokens: a disabled user who logs out by POST /api/v2/auth/login gets 400, like at any protected call', async () => {
    const { user, key } = await open();
    await accounts.disable(shop.context(), user.username);
    const byHeader = await shop.rest('POST', '/api/v2/auth/login', { sessionKey: key });
    const byToken = await shop.rest('POST', '/api/v2/auth/login', { as: user });
    expect([byHeader.status, byHeader.body]).toEqual([400, { detail: 'Inactive user' }]);
    expect([byToken.status, byToken.body]).toEqual([400, { detail: 'Inactive user' }]);
  });
});

describe('how many', () => {
  test('S15 a user has 50 live sessions: one more drops the oldest', async () => {
    const user = await shop.makeUser();
    const bystander = await open();
    const keys: string[] = [];
    for (let opened = 0; opened < 60; opened++) {
      shop.pass(1_000);
      keys.push((await open(user)).key);
    }
    expect(await shop.sql(`select count(*)::int as count from session where user_pk = ${user.pk}`)).toEqual([{ count: 50 }]);
    const statuses = await Promise.all(keys.map((key) => statusWith(key)));
    expect(statuses).toEqual([...Array(10).fill(401), ...Array(50).fill(200)]);
    expect(await statusWith(bystander.key)).toBe(200);
  });

  test('S15 the 50 stay 50 when ten more are opened at once', async () => {
    const user = await shop.makeUser();
    for (let opened = 0; opened < 50; opened++) await open(user);
    await Promise.all(Array.from({ length: 10 }, () => inTransaction(shop.context(), (tx) => sessions.open(tx, user, null))));
    expect(await shop.sql('select count(*)::int as count from session')).toEqual([{ count: 50 }]);
  });

  test('S15 the 50 stay 50 when ten sign in at once', async () => {
    const user = await shop.makeUser();
    for (let opened = 0; opened < 50; opened++) await open(user);
    shop.pass(1_000);
    const json = { username: user.username, password: PASSWORD };
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) => (index % 2 ? shop : twin).rest('POST', '/session/login', { json })),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(await shop.sql('select count(*)::int as count from session')).toEqual([{ count: 50 }]);
    expect(await Promise.all(answers.map((answer) => statusWith(keyIn(answer))))).toEqual(Array(10).fill(200));
  });
});

describe('the answers', () => {
  test.each([
    ...doors(),
    ['POST /token', ({ username }: User) => shop.rest('POST', '/token', { form: { username, password: PASSWORD } })] as const,
    ['POST /login', ({ username }: User) => shop.rest('POST', '/login', { form: { username, password: PASSWORD } })] as const,
  ])('S16 what %s answers is kept by nobody: no-store, and never a cookie', async (_door, login) => {
    const answer = await login(await shop.makeUser());
    expect(answer.status).toBe(200);
    expect(answer.headers.get('Cache-Control')).toBe('no-store');
    expect(answer.headers.getSetCookie()).toEqual([]);
  });

  test('S16 neither is what a refresh answers', async () => {
    const { username } = await shop.makeUser();
    const form = { username, password: PASSWORD, scope: 'offline_access' };
    const { refresh_token } = (await shop.rest('POST', '/token', { form })).body;
    const answer = await shop.rest('POST', '/token', { form: { grant_type: 'refresh_token', refresh_token } });
    expect([answer.status, answer.headers.get('Cache-Control'), answer.headers.getSetCookie()]).toEqual([200, 'no-store', []]);
  });

  test('S16 neither is what a refused login answers', async () => {
    const form = { username: 'nobody', password: PASSWORD };
    const answers = [
      await shop.rest('POST', '/token', { form }),
      await shop.rest('POST', '/session/login', { json: form }),
      await shop.rest('GET', `/api/v2/auth/login?${new URLSearchParams(form).toString()}`),
      await shop.rest('POST', '/session/login', { json: {} }),
      await shop.rest('POST', '/session/login', { body: '{', headers: { 'Content-Type': 'application/json' } }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 422, 400]);
    expect(answers.map(({ headers }) => headers.get('Cache-Control'))).toEqual(Array(5).fill('no-store'));
  });
});

describe('POST /api/v2/auth/login', () => {
  const BOTH = '{"detail":"Logout successful","data":"Logout successful"}';

  test.each<[string, (key: string, user: User, sid: string) => RequestOptions]>([
    ['X-SESSION-ID', (key) => ({ headers: { 'X-SESSION-ID': key } })],
    ['X-SESSIONID', (key) => ({ headers: { 'X-SESSIONID': key } })],
    ['session_key in the body', (session_key) => ({ json: { session_key } })],
    ['X-SESSION-ID beside an empty object', (key) => ({ json: {}, sessionKey: key })],
    ['a bearer token', (_key, { username }, sid) => ({ token: createAccessToken(shop.context(), { username, sid }) })],
  ])('S18 it ends the session that %s names, and says so under both names', async (_where, request) => {
    const { user, session, key } = await open();
    const other = await open(user);
    const answer = await shop.rest('POST', '/api/v2/auth/login', request(key, user, session.sid));
    expect([answer.status, answer.text]).toEqual([200, BOTH]);
    expect([await statusWith(key), await statusWith(other.key)]).toEqual([401, 200]);
  });

  test.each<[string, () => RequestOptions, string]>([
    ['without a key', () => ({}), 'Not authenticated'],
    ['with an empty object', () => ({ json: {} }), 'Not authenticated'],
    ['with a key of no session in X-SESSION-ID', () => ({ sessionKey: newKey() }), 'Not authenticated'],
    ['with a key of no session in the body', () => ({ json: { session_key: newKey() } }), 'Not authenticated'],
    ['with a token that cannot be read', () => ({ token: 'x' }), 'Could not validate credentials'],
  ])('S18 %s: 401', async (_what, request, detail) => {
    const { key } = await open();
    const answer = await shop.rest('POST', '/api/v2/auth/login', request());
    expect([answer.status, answer.text]).toEqual([401, JSON.stringify({ detail })]);
    expect(await statusWith(key)).toBe(200);
  });

  test('S18 a token that belongs to no session has none to end', async () => {
    const { user, key } = await open();
    const answer = await shop.rest('POST', '/api/v2/auth/login', { as: user });
    expect([answer.status, answer.text]).toEqual([401, '{"detail":"Not authenticated"}']);
    expect(await statusWith(key)).toBe(200);
  });

  test('S18 twice: 200, then 401', async () => {
    const { key } = await open();
    const first = await shop.rest('POST', '/api/v2/auth/login', { sessionKey: key });
    const second = await shop.rest('POST', '/api/v2/auth/login', { sessionKey: key });
    expect([first.status, first.text]).toEqual([200, BOTH]);
    expect([second.status, second.text]).toEqual([401, '{"detail":"Not authenticated"}']);
  });

  test('S18 a session key of somebody else in the body ends that session, as at the session router', async () => {
    const [mine, theirs] = [await open(), await open()];
    const answer = await shop.rest('POST', '/api/v2/auth/login', { json: { session_key: theirs.key }, sessionKey: mine.key });
    expect([answer.status, answer.text]).toEqual([200, BOTH]);
    expect([await statusWith(mine.key), await statusWith(theirs.key)]).toEqual([200, 401]);
  });

  test.each([1, null, [], {}])('S18 a session_key that is %j is bad input', async (session_key) => {
    const { key } = await open();
    const answer = await shop.rest('POST', '/api/v2/auth/login', { json: { session_key }, sessionKey: key });
    expect([answer.status, answer.body]).toEqual([
      422,
      { detail: [{ type: 'string_type', loc: ['body', 'session_key'], msg: 'Input should be a valid string' }] },
    ]);
    expect(await statusWith(key)).toBe(200);
  });
});

/** The ways to sign in that answer a session key. */
function doors(): [string, (user: User) => Promise<Answer>][] {
  return [
    ['the session router', ({ username }) => shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } })],
    [
      'GET /api/v2/auth/login',
      ({ username }) => shop.rest('GET', `/api/v2/auth/login?${new URLSearchParams({ username, password: PASSWORD }).toString()}`),
    ],
    ['POST /api/v2/auth/login', ({ username }) => shop.rest('POST', '/api/v2/auth/login', { json: { username, password: PASSWORD } })],
    ['login of GraphQL', ({ username }) => shop.graphql(LOGIN, { username, password: PASSWORD })],
  ];
}

function keyIn({ body }: Answer): string {
  return body.session_key ?? body.data.login.sessionKey;
}

async function open(by?: User) {
  const user = by ?? (await shop.makeUser());
  return { user, ...(await sessions.open(shop.context(), user, null)) };
}

function logout(key: string): Promise<Answer> {
  return shop.rest('POST', '/session/logout', { json: { session_key: key } });
}

function expectInvalidKey({ status, text }: Answer): void {
  expect([status, text]).toEqual([401, '{"data":"Invalid session key"}']);
}

async function statusWith(sessionKey: string, at: Shop = shop): Promise<number> {
  return (await at.rest('GET', '/users/me/', { sessionKey })).status;
}

function countsByStatus(answers: Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** What the server does every half minute. */
async function sweep(): Promise<number> {
  let deleted = 0;
  for (const feature of features) deleted += (await feature.sweep?.(shop.context())) ?? 0;
  return deleted;
}

async function seenAt(): Promise<number[]> {
  const [row] = await shop.sql('select last_seen_at, expires_at from session');
  return [row?.['last_seen_at'], row?.['expires_at']].map((time) => new Date(String(time)).getTime());
}

async function dumpOfAllTables(): Promise<string> {
  const tables = await shop.sql(`select quote_ident(tablename) as name from pg_tables where schemaname = 'public'`);
  const dumps = await Promise.all(tables.map(({ name }) => shop.sql(`select rows::text from ${String(name)} as rows`)));
  return JSON.stringify(dumps);
}
