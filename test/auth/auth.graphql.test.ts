import { describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { globalId, readGlobalId } from '../../src/api/node.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, codes, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const PAYLOAD = 'accessToken tokenType expiresIn refreshToken sessionKey user { username scopes }';
const LOGIN = `mutation ($username: String!, $password: String!, $scopes: [String!]) {
  login(username: $username, password: $password, scopes: $scopes) { ${PAYLOAD} }
}`;
const REFRESH = `mutation ($token: String!) { refresh(refreshToken: $token) { ${PAYLOAD} } }`;
const LOGOUT = 'mutation ($key: String) { logout(sessionKey: $key) { ended } }';
const END_SESSION = 'mutation ($id: ID!) { endSession(id: $id) { ended } }';
const LOGOUT_EVERYWHERE = 'mutation { logoutEverywhere { ended } }';
const CHANGE_PASSWORD =
  'mutation ($current: String!, $new: String!) { changePassword(current: $current, new: $new) { username } }';
const SESSIONS =
  '{ me { sessions { totalCount nodes { id current userAgent createdAt lastSeenAt expiresAt } } } }';
const NEW_PASSWORD = 'another good password';
const DAY = 86_400_000;

interface Login {
  accessToken: string;
  refreshToken: string;
  sessionKey: string;
}

describe('GraphQL contract, login', () => {
  test('it returns the credentials of a new session, and the user', async () => {
    await shop.makeUser({ username: 'ada', scopes: ['blog:write'] });
    const answer = await shop.graphql(LOGIN, { username: 'ada', password: PASSWORD });
    expect(answer.body).toEqual({
      data: {
        login: {
          accessToken: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/),
          tokenType: 'bearer',
          expiresIn: 1800,
          refreshToken: expect.any(String),
          sessionKey: expect.stringMatching(/^[\w-]{43}$/),
          user: { username: 'ada', scopes: ['blog:write'] },
        },
      },
    });
  });

  test('the access token and the session key are credentials of the same session', async () => {
    const { accessToken, sessionKey } = await login(await shop.makeUser());
    const query = '{ me { sessions { nodes { id current } } } }';
    const [byToken, byKey] = [
      await shop.graphql(query, {}, { token: accessToken }),
      await shop.graphql(query, {}, { sessionKey }),
    ];
    expect(byToken.body.data.me.sessions.nodes).toEqual([
      { id: expect.any(String), current: true },
    ]);
    expect(byKey.body).toEqual(byToken.body);
  });
});

describe('GraphQL contract, login(scopes:)', () => {
  test.each([
    ['no scopes', undefined, ['products:write', 'blog:write']],
    ['null', null, ['products:write', 'blog:write']],
    ['a scope that the user holds', ['blog:write'], ['blog:write']],
    ['a scope that the user does not hold', ['users:read'], []],
    ['an unknown scope', ['everything'], []],
    ['an empty list', [], []],
  ])(
    'with %s, both credentials have only requested scopes that the user holds',
    async (_name, scopes, expected) => {
      const { accessToken, sessionKey } = await login(
        await shop.makeUser({ scopes: ['products:write', 'blog:write'] }),
        { scopes },
      );
      expect(await scopesOf({ token: accessToken })).toEqual(expected);
      expect(await scopesOf({ sessionKey })).toEqual(expected);
    },
  );

  test('a scope that the user loses is also lost in the session', async () => {
    const user = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const { accessToken, sessionKey } = await login(user);
    await shop.sql(`update "user" set scopes = '{blog:write}'`);
    expect([await scopesOf({ token: accessToken }), await scopesOf({ sessionKey })]).toEqual([
      ['blog:write'],
      ['blog:write'],
    ]);
  });
});

describe('GraphQL contract, refresh', () => {
  test('it returns new credentials of the same session', async () => {
    const first = await login(await shop.makeUser({ username: 'ada' }));
    const [{ id }] = await sessionsOf({ token: first.accessToken });
    shop.advanceClock(60_000);
    const answer = await refresh(first.refreshToken);
    const second: Login = answer.body.data.refresh;
    expect(answer.body.data.refresh).toEqual({
      accessToken: expect.any(String),
      tokenType: 'bearer',
      expiresIn: 1800,
      refreshToken: expect.any(String),
      sessionKey: expect.stringMatching(/^[\w-]{43}$/),
      user: { username: 'ada', scopes: [] },
    });
    expect(second.accessToken).not.toBe(first.accessToken);
    expect(second.refreshToken).not.toBe(first.refreshToken);
    expect(await sessionsOf({ token: second.accessToken })).toMatchObject([{ id, current: true }]);
    expect(await sessionsOf({ sessionKey: second.sessionKey })).toMatchObject([
      { id, current: true },
    ]);
  });

  test('the scopes of the session stay narrowed', async () => {
    const first = await login(await shop.makeUser({ scopes: ['products:write', 'blog:write'] }), {
      scopes: ['blog:write'],
    });
    const second: Login = (await refresh(first.refreshToken)).body.data.refresh;
    expect([
      await scopesOf({ token: second.accessToken }),
      await scopesOf({ sessionKey: second.sessionKey }),
    ]).toEqual([['blog:write'], ['blog:write']]);
  });

  test.each([
    ['an access token', ({ accessToken }: Login) => accessToken],
    ['a session key', ({ sessionKey }: Login) => sessionKey],
    [
      'a token of another signature',
      ({ refreshToken }: Login) => refreshToken.slice(0, -10) + 'A'.repeat(10),
    ],
    ['a token of another secret', ({ refreshToken }: Login) => forged(refreshToken)],
    ['nothing', () => ''],
  ])('%s is not a refresh token: UNAUTHENTICATED, and the session stays', async (_name, made) => {
    const opened = await login(await shop.makeUser());
    const answer = await refresh(made(opened));
    expect([answer.body.data, codes(answer)]).toEqual([null, ['UNAUTHENTICATED']]);
    expect(await isSignedIn({ token: opened.accessToken })).toBe(true);
  });

  test('a user disabled since then is INACTIVE_USER', async () => {
    const { refreshToken } = await login(await shop.makeUser());
    await shop.sql('update "user" set disabled = true');
    expect(codes(await refresh(refreshToken))).toEqual(['INACTIVE_USER']);
  });
});

describe('GraphQL contract, logout', () => {
  test('without credentials, and with a token without a session, it is UNAUTHENTICATED', async () => {
    const anonymous = await shop.graphql(LOGOUT);
    const foreign = await shop.graphql(LOGOUT, {}, { as: await shop.makeUser() });
    expect([codes(anonymous), codes(foreign)]).toEqual([['UNAUTHENTICATED'], ['UNAUTHENTICATED']]);
  });
});

describe('GraphQL contract, endSession', () => {
  test("it ends only the caller's session of this id, with all its credentials", async () => {
    const user = await shop.makeUser();
    const [own, other] = [await login(user), await login(user)];
    const answer = await shop.graphql(
      END_SESSION,
      { id: await idOf(other) },
      { token: own.accessToken },
    );
    expect(answer.body).toEqual({ data: { endSession: { ended: 1 } } });
    expect(await areSignedIn(other)).toEqual([false, false]);
    expect(codes(await refresh(other.refreshToken))).toEqual(['UNAUTHENTICATED']);
    expect(await areSignedIn(own)).toEqual([true, true]);
  });

  test('it can end the current session, and the rest of the operation is unauthenticated', async () => {
    const own = await login(await shop.makeUser());
    const query = `mutation ($id: ID!) { endSession(id: $id) { ended } addItem(itemId: "lamp") { id } }`;
    const answer = await shop.graphql(
      query,
      { id: await idOf(own) },
      { sessionKey: own.sessionKey },
    );
    expect([answer.body.data, codes(answer)]).toEqual([null, ['UNAUTHENTICATED']]);
    expect(await areSignedIn(own)).toEqual([false, false]);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test("another user's is NOT_FOUND, with every scope, and stays", async () => {
    const stranger = await login(await shop.makeUser());
    const caller = await shop.makeUser({ scopes: ['users:read', 'products:write', 'blog:write'] });
    const answer = await shop.graphql(END_SESSION, { id: await idOf(stranger) }, { as: caller });
    expect([answer.body.data, codes(answer)]).toEqual([null, ['NOT_FOUND']]);
    expect(await areSignedIn(stranger)).toEqual([true, true]);
  });

  test.each([
    ['nothing', () => ''],
    ['text', () => 'x'],
    ['a session key', ({ sessionKey }: Login) => sessionKey],
    ['an id of another type', (_opened: Login, id: string) => globalId('Product', keyIn(id))],
  ])('%s is NOT_FOUND, and ends nothing', async (_what, made) => {
    const opened = await login(await shop.makeUser());
    const id = made(opened, await idOf(opened));
    const answer = await shop.graphql(END_SESSION, { id }, { token: opened.accessToken });
    expect([answer.status, answer.body.data, codes(answer)]).toEqual([200, null, ['NOT_FOUND']]);
    expect(await areSignedIn(opened)).toEqual([true, true]);
  });
});

describe('GraphQL contract, logoutEverywhere', () => {
  test('sessions that have expired do not count', async () => {
    const user = await shop.makeUser();
    await login(user);
    shop.advanceClock(14 * DAY);
    const { accessToken } = await login(user);
    const answer = await shop.graphql(LOGOUT_EVERYWHERE, {}, { token: accessToken });
    expect(answer.body).toEqual({ data: { logoutEverywhere: { ended: 1 } } });
  });
});

describe('GraphQL contract, changePassword', () => {
  test("it sets the password and ends the user's other sessions", async () => {
    const user = await shop.makeUser();
    const [own, other, stranger] = [
      await login(user),
      await login(user),
      await login(await shop.makeUser()),
    ];
    const answer = await shop.graphql(
      CHANGE_PASSWORD,
      { current: PASSWORD, new: NEW_PASSWORD },
      { token: own.accessToken },
    );
    expect(answer.body).toEqual({ data: { changePassword: { username: user.username } } });
    expect(await areSignedIn(own)).toEqual([true, true]);
    expect(await areSignedIn(other)).toEqual([false, false]);
    expect(await areSignedIn(stranger)).toEqual([true, true]);
    expect(
      codes(await shop.graphql(LOGIN, { username: user.username, password: PASSWORD })),
    ).toEqual(['INVALID_CREDENTIALS']);
    expect(
      codes(await shop.graphql(LOGIN, { username: user.username, password: NEW_PASSWORD })),
    ).toEqual([]);
  });

  test.each(['wrong', '', `${PASSWORD} `])(
    'the wrong current password %j is INVALID_CREDENTIALS, and nothing changes',
    async (current) => {
      const user = await shop.makeUser();
      const [own, other] = [await login(user), await login(user)];
      const answer = await shop.graphql(
        CHANGE_PASSWORD,
        { current, new: NEW_PASSWORD },
        { token: own.accessToken },
      );
      expect([answer.body.data, codes(answer)]).toEqual([null, ['INVALID_CREDENTIALS']]);
      expect(await areSignedIn(other)).toEqual([true, true]);
      expect(
        codes(await shop.graphql(LOGIN, { username: user.username, password: PASSWORD })),
      ).toEqual([]);
    },
  );
});

describe('GraphQL contract, me.sessions', () => {
  test('they are the open sessions, the latest first; one is the current one', async () => {
    const user = await shop.makeUser();
    const early = await login(user, {}, { headers: { 'User-Agent': 'early' } });
    shop.advanceClock(60_000);
    await login(user, {}, { headers: { 'User-Agent': 'late' } });
    const { sessions } = (await shop.graphql(SESSIONS, {}, { token: early.accessToken })).body.data
      .me;
    expect(sessions).toMatchObject({
      totalCount: 2,
      nodes: [
        { userAgent: 'late', current: false },
        { userAgent: 'early', current: true },
      ],
    });
  });

  test('a session has the times of its creation, last use and expiry', async () => {
    const { accessToken } = await login(await shop.makeUser());
    const [before] = await sessionsOf({ token: accessToken });
    shop.advanceClock(120_000);
    const [after] = await sessionsOf({ token: accessToken });
    expect(Date.parse(before.expiresAt) - Date.parse(before.createdAt)).toBe(14 * DAY);
    expect(before.lastSeenAt).toBe(before.createdAt);
    expect(after.createdAt).toBe(before.createdAt);
    expect(Date.parse(after.lastSeenAt)).toBeGreaterThanOrEqual(
      Date.parse(before.createdAt) + 120_000,
    );
    expect(Date.parse(after.expiresAt) - Date.parse(after.lastSeenAt)).toBe(14 * DAY);
  });

  test('they are paginated, and a cursor stays valid when its session ends', async () => {
    const user = await shop.makeUser();
    const keys: string[] = [];
    for (let opened = 0; opened < 3; opened++, shop.advanceClock(1_000))
      keys.push((await login(user)).sessionKey);
    const query = `query ($first: Int, $after: String) {
      me { sessions(first: $first, after: $after) { totalCount pageInfo { hasNextPage hasPreviousPage endCursor } nodes { id } } }
    }`;
    const all = await sessionsOf({ as: user });
    const first = (await shop.graphql(query, { first: 2 }, { as: user })).body.data.me.sessions;
    await shop.graphql(LOGOUT, { key: keys[1] });
    const second = (
      await shop.graphql(query, { first: 2, after: first.pageInfo.endCursor }, { as: user })
    ).body.data.me.sessions;
    expect(first.nodes).toEqual([{ id: all[0].id }, { id: all[1].id }]);
    expect(first.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
    expect(second).toMatchObject({
      totalCount: 2,
      pageInfo: { hasNextPage: false, hasPreviousPage: true },
      nodes: [{ id: all[2].id }],
    });
  });

  test('those of another user are empty, even with users:read', async () => {
    const [user, reader] = [await shop.makeUser(), await shop.makeUser({ scopes: ['users:read'] })];
    await login(user);
    const answer = await shop.graphql(
      '{ users { nodes { sessions { totalCount nodes { id } } } } }',
      {},
      { as: reader },
    );
    expect(answer.body.data.users.nodes).toEqual([
      { sessions: { totalCount: 0, nodes: [] } },
      { sessions: { totalCount: 0, nodes: [] } },
    ]);
  });
});

async function login(
  user: User,
  variables: Record<string, unknown> = {},
  request: RequestOptions = {},
): Promise<Login> {
  return (
    await shop.graphql(
      LOGIN,
      { username: user.username, password: PASSWORD, ...variables },
      request,
    )
  ).body.data.login;
}

function refresh(token: string): Promise<Answer> {
  return shop.graphql(REFRESH, { token });
}

async function isSignedIn(credentials: RequestOptions): Promise<boolean> {
  const { status, body } = await shop.graphql('{ me { username } }', {}, credentials);
  return status === 200 && body.data.me !== null;
}

/** Returns whether the access token and the session key are valid. */
async function areSignedIn({ accessToken, sessionKey }: Login): Promise<boolean[]> {
  return [await isSignedIn({ token: accessToken }), await isSignedIn({ sessionKey })];
}

async function sessionsOf(credentials: RequestOptions) {
  return (await shop.graphql(SESSIONS, {}, credentials)).body.data.me.sessions.nodes;
}

/** Returns the global id of the session that was opened. */
async function idOf({ accessToken }: Login): Promise<string> {
  const nodes: { id: string; current: boolean }[] = await sessionsOf({ token: accessToken });
  return nodes.find(({ current }) => current)?.id ?? '';
}

function keyIn(id: string): string {
  return readGlobalId(id)?.key ?? '';
}

async function scopesOf(credentials: RequestOptions): Promise<string[]> {
  return (await shop.graphql('{ scopes }', {}, credentials)).body.data.scopes;
}

function forged(token: string): string {
  const { header, payload } = jwt.decode(token, { complete: true }) ?? {};
  return jwt.sign(payload as object, 'another-secret-another-secret-another', {
    header: header as jwt.JwtHeader,
  });
}
