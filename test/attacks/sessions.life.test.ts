import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as auth from '../../src/features/auth/auth.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { inTransaction } from '../../src/request/context.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { LOGIN_ENDPOINTS, openSession, type SessionCredentials } from '../support/logins.ts';
import { ME } from '../support/forge.ts';
import { sized } from '../support/sized.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const MAX_SESSIONS = 50;

const shop = useShop();
/** A second instance on the same database. */
const secondShop = new Shop();

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

/** Every endpoint that returns a key or a token. */
const LOGINS = LOGIN_ENDPOINTS.map(
  ([name, enter]) =>
    [name, (user: User, password = PASSWORD) => enter(shop, user.username, password)] as const,
);

describe('time', () => {
  test.each<[string, number[], number]>([
    ['14 days idle', [14 * DAY], 401],
    ['15 days idle', [15 * DAY], 401],
    ['a year idle', [365 * DAY], 401],
    ['a minute less than 14 days idle', [14 * DAY - MINUTE], 200],
    ['used after 13 days, and 14 days idle then', [13 * DAY, 14 * DAY], 401],
    ['used after 13 days, and 13 days idle then', [13 * DAY, 13 * DAY], 200],
    ['used every 10 days, for 80 days', Array<number>(8).fill(10 * DAY), 200],
    [
      'used for 90 days less a minute',
      [...Array<number>(8).fill(10 * DAY), 10 * DAY - MINUTE],
      200,
    ],
    ['used every 10 days, for 90 days', Array<number>(9).fill(10 * DAY), 401],
    ['used every 13 days, past 90 days', Array<number>(7).fill(13 * DAY), 401],
  ])('S13 a session %s', async (_what, steps, status) => {
    const opened = await openSession(shop);
    for (const step of steps.slice(0, -1)) {
      shop.advanceClock(step);
      expect(await statusesOf({ sessionKey: opened.key })).toEqual([200, 200]);
    }
    shop.advanceClock(steps.at(-1) ?? 0);
    expect(await statusesOf({ sessionKey: opened.key })).toEqual([status, status]);
    const token = createAccessToken(shop.context(), {
      username: opened.user.username,
      sid: opened.sid,
    });
    expect(await statusesOf({ token })).toEqual([status, status]);
    shop.advanceClock(MINUTE);
    expect(await auth.sweep(shop.context())).toBe(status === 401 ? 1 : 0);
    expect(await shop.sql('select sid from session')).toHaveLength(status === 401 ? 0 : 1);
  });

  test.each<[string, (opened: SessionCredentials) => Promise<Answer>, string]>([
    [
      'logged out',
      ({ key }) => shop.rest('POST', '/session/logout', { json: { session_key: key } }),
      '{"data":"Invalid session key"}',
    ],
    [
      'logged out at v2',
      ({ key }) => shop.rest('POST', '/api/v2/auth/login', { sessionKey: key }),
      '{"detail":"Not authenticated"}',
    ],
    [
      'refreshed',
      ({ refreshToken }) =>
        shop.rest('POST', '/token', {
          form: { grant_type: 'refresh_token', refresh_token: refreshToken },
        }),
      '{"detail":"Could not validate credentials","error":"invalid_grant","error_description":"Could not validate credentials"}',
    ],
  ])(
    'S13 an expired session cannot be %s, although its row still exists',
    async (_what, use, text) => {
      const opened = await openSession(shop);
      shop.advanceClock(14 * DAY);
      const answer = await use(opened);
      expect([answer.status, answer.text]).toEqual([401, text]);
      expect(await shop.sql('select sid from session')).toHaveLength(1);
    },
  );

  test('S13 rejected requests do not extend a session', async () => {
    const opened = await openSession(shop);
    await accounts.disable(secondShop.context(), opened.user.username);
    const before = await shop.sql('select last_seen_at, expires_at from session');
    shop.advanceClock(13 * DAY);
    expect(await statusesOf({ sessionKey: opened.key })).toEqual([400, 400]);
    expect(await shop.sql('select last_seen_at, expires_at from session')).toEqual(before);
  });
});

describe('disabled and deleted users', () => {
  test('S14 disabling ends all sessions in the same transaction, on every instance', async () => {
    const opened = await Promise.all([openSession(shop), openSession(shop)]).then(
      async ([mine, bystander]) => ({
        mine,
        bystander,
        other: await openSession(shop, mine.user),
      }),
    );
    for (const { key } of Object.values(opened))
      expect(await statusesOf({ sessionKey: key })).toEqual([200, 200]);
    await accounts.disable(shop.context(), opened.mine.user.username);
    const rows = await shop.sql(`
      select ended_at is not null as ended, session.xmin = "user".xmin as same from session join "user" on pk = user_pk
      where pk = ${opened.mine.user.pk}`);
    expect(rows).toEqual([
      { ended: true, same: true },
      { ended: true, same: true },
    ]);
    for (const { key, token } of [opened.mine, opened.other]) {
      // A disabled user gets 400, whether or not the session has ended (decisions, tokens).
      for (const credentials of [{ sessionKey: key }, { token }])
        expect(await statusesOf(credentials)).toEqual([400, 400]);
    }
    expect(await statusesOf({ sessionKey: opened.bystander.key })).toEqual([200, 200]);
    await accounts.enable(shop.context(), opened.mine.user.username);
    for (const { key, token, refreshToken } of [opened.mine, opened.other]) {
      for (const credentials of [{ sessionKey: key }, { token }])
        expect(await statusesOf(credentials)).toEqual([401, 401]);
      const form = { grant_type: 'refresh_token', refresh_token: refreshToken };
      expect((await shop.rest('POST', '/token', { form })).status).toBe(401);
    }
  });

  test('S14 deleting a user deletes the sessions with it', async () => {
    const mine = await openSession(shop);
    const bystander = await openSession(shop);
    await shop.sql(`delete from "user" where pk = ${mine.user.pk}`);
    expect(await shop.sql('select user_pk::int from session')).toEqual([
      { user_pk: bystander.user.pk },
    ]);
    for (const credentials of [{ sessionKey: mine.key }, { token: mine.token }])
      expect(await statusesOf(credentials)).toEqual([401, 401]);
    const form = { grant_type: 'refresh_token', refresh_token: mine.refreshToken };
    expect((await shop.rest('POST', '/token', { form })).status).toBe(401);
    expect(await statusesOf({ sessionKey: bystander.key })).toEqual([200, 200]);
  });

  test('S14 a new password ends all sessions except the one that changed it', async () => {
    const mine = await openSession(shop);
    const other = await openSession(shop, mine.user);
    const change =
      'mutation ($current: String!) { changePassword(current: $current, new: "another password") { username } }';
    expect(
      (await shop.graphql(change, { current: PASSWORD }, { sessionKey: mine.key })).body.errors,
    ).toBeUndefined();
    expect(await statusesOf({ sessionKey: mine.key })).toEqual([200, 200]);
    expect(await statusesOf({ sessionKey: other.key })).toEqual([401, 401]);
    await accounts.setPassword(secondShop.context(), mine.user.username, 'one more password');
    expect(await statusesOf({ sessionKey: mine.key })).toEqual([401, 401]);
    expect(await statusesOf({ token: mine.token })).toEqual([401, 401]);
  });

  test('S14 a login that runs while its user is disabled leaves no live session', async () => {
    const user = await shop.makeUser();
    const json = { username: user.username, password: PASSWORD };
    const statuses = new Set<number>();
    for (let round = 0; round < 10; round++) {
      const login = shop.rest('POST', '/session/login', { json });
      // A little later each time, from before the hash is compared to after it.
      for (let turn = 0; turn < round * 3; turn++) await shop.sql('select 1');
      await accounts.disable(secondShop.context(), user.username);
      statuses.add((await login).status);
      expect(await shop.sql('select sid from session where ended_at is null')).toEqual([]);
      await accounts.enable(secondShop.context(), user.username);
    }
    for (const status of statuses) expect([200, 401]).toContain(status);
  });
});

describe('number of sessions', () => {
  test('S15 of many logins of one user only the latest 50 sessions are stored, at any time', async () => {
    const batches = sized(100, 3);
    const user = await shop.makeUser();
    const bystander = await openSession(shop);
    const keys: string[] = [];
    for (let batch = 0; batch < batches; batch++) {
      // A hundred in one transaction, because separate commits do not matter here.
      await inTransaction(shop.context(), async (tx) => {
        for (let opened = 0; opened < 100; opened++) {
          shop.advanceClock(1);
          keys.push((await sessions.open(tx, user, null)).key);
        }
      });
      expect(await countOf(user)).toBe(MAX_SESSIONS);
    }
    expect(new Set(keys).size).toBe(batches * 100);
    expect(new Set(keys.map((key) => key.slice(0, 12))).size).toBe(batches * 100);
    const latest = keys.slice(-MAX_SESSIONS);
    const dropped = [...keys.slice(0, 5), ...keys.slice(-MAX_SESSIONS - 5, -MAX_SESSIONS)];
    expect(new Set(await Promise.all(latest.map((sessionKey) => statusOf(sessionKey))))).toEqual(
      new Set([200]),
    );
    expect(new Set(await Promise.all(dropped.map((sessionKey) => statusOf(sessionKey))))).toEqual(
      new Set([401]),
    );
    expect(await statusOf(bystander.key)).toBe(200);
  }, 300_000);

  test('S15 concurrent logins on two instances leave 50 sessions', async () => {
    const user = await shop.makeUser();
    let latest: { key: string }[] = [];
    for (let round = 0; round < 4; round++) {
      latest = await Promise.all(
        Array.from({ length: 40 }, (_, at) =>
          inTransaction((at % 2 === 0 ? shop : secondShop).context(), (tx) =>
            sessions.open(tx, user, null),
          ),
        ),
      );
    }
    expect(await countOf(user)).toBe(MAX_SESSIONS);
    const statuses = await Promise.all(latest.map(({ key }) => statusOf(key)));
    expect(new Set(statuses)).toEqual(new Set([200]));
  }, 60_000);

  test('S15 a login by each endpoint deletes the oldest session and returns an active one', async () => {
    const user = await shop.makeUser();
    const oldest: string[] = [];
    for (let opened = 0; opened < MAX_SESSIONS; opened++) {
      shop.advanceClock(1);
      oldest.push((await openSession(shop, user)).key);
    }
    for (const [endpoint, login] of LOGINS) {
      shop.advanceClock(1);
      const answer = await login(user);
      expect([endpoint, answer.status]).toEqual([endpoint, 200]);
      expect(await statusesOf(credentialsIn(answer))).toEqual([200, 200]);
      expect(await countOf(user)).toBe(MAX_SESSIONS);
    }
    const statuses = await Promise.all(oldest.map((key) => statusOf(key)));
    expect(statuses.filter((status) => status === 401)).toHaveLength(LOGINS.length);
    expect(statuses.slice(0, LOGINS.length)).toEqual(LOGINS.map(() => 401));
  });
});

describe('responses with a key or a token', () => {
  test.each(LOGINS)('S16 %s: no-store, and no cookie', async (_name, login) => {
    const user = await shop.makeUser();
    const good = await login(user);
    expect(good.status).toBe(200);
    const bad = [await login({ ...user, username: 'nobody' } as User), await login(user, 'wrong')];
    for (const { text } of bad) expect(text).toMatch(/Incorrect|INVALID_CREDENTIALS/);
    for (const answer of [good, ...bad, await login(user, '')]) expectNotStored(answer);
    expect(
      (await shop.rest('GET', '/users/me/', credentialsIn(good))).headers.getSetCookie(),
    ).toEqual([]);
  });

  test('S16 refresh and logout: no-store, and no cookie', async () => {
    const { user, key } = await openSession(shop);
    const form = { username: user.username, password: PASSWORD, scope: 'offline_access' };
    const first = await shop.rest('POST', '/token', { form });
    const refresh = { grant_type: 'refresh_token', refresh_token: first.body.refresh_token };
    const second = await shop.rest('POST', '/token', { form: refresh });
    shop.advanceClock(shop.config.refreshReuseSeconds * 1000);
    const answers = [
      first,
      second,
      // Rejected on its second use.
      await shop.rest('POST', '/token', { form: refresh }),
      await shop.rest('POST', '/session/logout', { json: { session_key: key } }),
      await shop.rest('POST', '/session/logout', { json: { session_key: key } }),
      await shop.rest('POST', '/session/login', { json: {} }),
      await shop.rest('POST', '/api/v2/auth/login', { sessionKey: key }),
      await shop.graphql(
        'mutation ($token: String!) { refresh(refreshToken: $token) { accessToken } }',
        { token: 'x' },
      ),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 401, 200, 401, 422, 401, 200]);
    for (const answer of answers) expectNotStored(answer);
  });
});

/** Returns the status of both APIs for these credentials. */
async function statusesOf(credentials: RequestOptions): Promise<number[]> {
  const answers = [
    await shop.rest('GET', '/users/me/', credentials),
    await shop.graphql(ME, {}, credentials),
  ];
  return answers.map(({ status }) => status);
}

async function statusOf(sessionKey: string): Promise<number> {
  return (await shop.rest('GET', '/users/me/', { sessionKey })).status;
}

async function countOf(user: User): Promise<number> {
  const [row] = await shop.sql(
    `select count(*)::int as count from session where user_pk = ${user.pk}`,
  );
  return Number(row?.['count']);
}

function credentialsIn({ body }: Answer): RequestOptions {
  const token = body.access_token ?? body.data?.login.accessToken;
  return token === undefined ? { sessionKey: body.session_key } : { token };
}

function expectNotStored({ headers }: Answer): void {
  expect(headers.get('Cache-Control')).toBe('no-store');
  expect(headers.getSetCookie()).toEqual([]);
  expect(headers.get('Access-Control-Allow-Credentials')).toBeNull();
}
