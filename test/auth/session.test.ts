import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { features } from '../../src/features.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { Shop, useShop } from '../support/shop.ts';

const MINUTE = 60_000;
const DAY = 86_400_000;
const ME = '{ me { username } }';

// The retention of session records is longer than any test.
const shop = useShop({ CHANGE_LOG_RETENTION_DAYS: '3650' });
/** A second instance on the same database. */
const secondShop = new Shop();

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

describe('the headers', () => {
  test.each<[string, (key: string, other: string) => Record<string, string>, number]>([
    ['X-SESSION-ID alone', (key) => ({ 'X-SESSION-ID': key }), 200],
    ['X-SESSIONID alone', (key) => ({ 'X-SESSIONID': key }), 200],
    ['both, the same', (key) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': key }), 200],
    [
      'both, different, each of a live session',
      (key, other) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': other }),
      401,
    ],
    ['both, the second wrong', (key) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': 'x' }), 401],
    ['both, the first wrong', (key) => ({ 'X-SESSION-ID': 'x', 'X-SESSIONID': key }), 401],
    ['both, the second empty', (key) => ({ 'X-SESSION-ID': key, 'X-SESSIONID': '' }), 401],
    ['S9 a key in upper case', (key) => ({ 'X-SESSION-ID': key.toUpperCase() }), 401],
    [
      'S9 a key percent-encoded',
      (key) => ({ 'X-SESSION-ID': encodeURIComponent(`"${key}"`) }),
      401,
    ],
    ['an empty key', () => ({ 'X-SESSION-ID': '' }), 401],
  ])('S10 %s, by GraphQL', async (_what, headers, status) => {
    const { user, key } = await open();
    const other = await open(user);
    const request = { headers: headers(key, other.key) };
    const answer = await shop.graphql(ME, {}, request);
    expect(answer.status).toBe(status);
    expect(answer.body).toEqual(
      status === 200
        ? { data: { me: { username: user.username } } }
        : { errors: [{ message: 'Not authenticated', extensions: { code: 'UNAUTHENTICATED' } }] },
    );
  });

  test.each<[string, (user: User) => string, string]>([
    ['another user', (user) => `Bearer ${shop.tokenOf(user)}`, 'served as that user'],
    ['nobody', () => 'Bearer x', 'Could not validate credentials'],
    ['an unsupported scheme', () => 'Basic dXNlcjp4', 'Not authenticated'],
  ])(
    'Decisions, which credential: if Authorization names %s, the session key does not count',
    async (_who, header, outcome) => {
      const { key } = await open();
      const user = await shop.makeUser();
      const answer = await shop.rest('GET', '/users/me/', {
        sessionKey: key,
        headers: { Authorization: header(user) },
      });
      expect([answer.status, answer.body.detail ?? answer.body.username]).toEqual(
        outcome === 'served as that user' ? [200, user.username] : [401, outcome],
      );
    },
  );
});

describe('time', () => {
  test('S13 the sweep deletes only sessions expired for a minute, so that subscribers get the reason', async () => {
    // The row counts that earlier tests have split are merged.
    await sweep();
    const user = await shop.makeUser();
    await open(user);
    shop.advanceClock(14 * DAY - MINUTE);
    const { session } = await open(user);
    for (const expected of [0, 0, 1]) {
      expect(await sweep()).toBe(expected);
      shop.advanceClock(MINUTE);
    }
    expect(await shop.sql('select sid from session')).toEqual([{ sid: session.sid }]);
  });

  test('Decisions, session key: a use is recorded at most once a minute', async () => {
    const { key, session } = await open();
    shop.advanceClock(50_000);
    await statusWith(key);
    expect(await seenAt()).toEqual([session.lastSeenAt.getTime(), session.expiresAt.getTime()]);
    shop.advanceClock(10_000);
    const before = shop.now().getTime();
    await statusWith(key);
    const [seen = 0, expires = 0] = await seenAt();
    expect(seen).toBeGreaterThanOrEqual(before);
    expect(seen).toBeLessThanOrEqual(shop.now().getTime());
    expect(expires - seen).toBe(14 * DAY);
  });

  test('P14 concurrent requests record one use', async () => {
    const { key } = await open();
    await shop.sql('create sequence uses');
    await shop.sql(
      `create function count_use() returns trigger language plpgsql as $$ begin perform nextval('uses'); return new; end $$`,
    );
    await shop.sql(
      'create trigger use before update on session for each row execute function count_use()',
    );
    try {
      shop.advanceClock(60_000);
      const answers = await Promise.all(Array.from({ length: 20 }, () => statusWith(key)));
      expect(new Set(answers)).toEqual(new Set([200]));
      expect(await shop.sql('select last_value::int as uses, is_called from uses')).toEqual([
        { uses: 1, is_called: true },
      ]);
    } finally {
      await shop.sql('drop function count_use cascade');
      await shop.sql('drop sequence uses');
    }
  });

  test('Decisions, session key: a bearer token of the session counts as its use', async () => {
    const { user, session } = await open();
    shop.advanceClock(13 * DAY);
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    expect((await shop.rest('GET', '/users/me/', { token })).status).toBe(200);
    const [seen = 0] = await seenAt();
    expect(seen - session.createdAt.getTime()).toBeGreaterThanOrEqual(13 * DAY);
  });
});

describe('disabling a user', () => {
  test('S14 disabling also ends the sessions at another instance: 400 at once, and 401 and not listed once enabled again', async () => {
    const { user, key } = await open();
    expect(await statusWith(key, secondShop)).toBe(200);
    await accounts.disable(shop.context(), user.username);
    expect(await statusWith(key, secondShop)).toBe(400);
    await accounts.enable(shop.context(), user.username);
    expect(await statusWith(key, secondShop)).toBe(401);
    expect(await sessions.listOf(shop.context(), user.pk)).toEqual([]);
  });
});

test('S16 the response of a login to an unreadable body is not cached', async () => {
  const answer = await shop.rest('POST', '/session/login', {
    body: '{',
    headers: { 'Content-Type': 'application/json' },
  });
  expect([answer.status, answer.headers.get('Cache-Control')]).toEqual([400, 'no-store']);
});

describe('POST /api/v2/auth/login', () => {
  const BOTH = '{"detail":"Logout successful","data":"Logout successful"}';

  test('S18 a session key of another user in the body ends that session, as at the session router', async () => {
    const [mine, theirs] = [await open(), await open()];
    const answer = await shop.rest('POST', '/api/v2/auth/login', {
      json: { session_key: theirs.key },
      sessionKey: mine.key,
    });
    expect([answer.status, answer.text]).toEqual([200, BOTH]);
    expect([await statusWith(mine.key), await statusWith(theirs.key)]).toEqual([200, 401]);
  });
});

async function open(by?: User) {
  const user = by ?? (await shop.makeUser());
  return { user, ...(await sessions.open(shop.context(), user, null)) };
}

async function statusWith(sessionKey: string, at: Shop = shop): Promise<number> {
  return (await at.rest('GET', '/users/me/', { sessionKey })).status;
}

/** Runs the sweep, as the server does every half minute. */
async function sweep(): Promise<number> {
  let deleted = 0;
  for (const feature of features) deleted += (await feature.sweep?.(shop.context())) ?? 0;
  return deleted;
}

async function seenAt(): Promise<number[]> {
  const [row] = await shop.sql('select last_seen_at, expires_at from session');
  return [row?.['last_seen_at'], row?.['expires_at']].map((time) =>
    new Date(String(time)).getTime(),
  );
}
