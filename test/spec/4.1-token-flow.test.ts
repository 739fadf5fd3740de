import { expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const DAY = 86_400_000;
/** Time within which the last refresh token may be reused, in ms. */
const REUSE_MS = 10_000;
const LOGIN_PATHS = ['/token', '/login'];
const WRONG = {
  status: 401,
  body: { detail: 'Incorrect username or password' },
  challenge: 'Bearer',
};
const REJECTED = {
  status: 401,
  body: { detail: 'Could not validate credentials' },
  challenge: 'Bearer',
};
const REFRESH_REJECTED = {
  ...REJECTED,
  body: {
    ...REJECTED.body,
    error: 'invalid_grant',
    error_description: 'Could not validate credentials',
  },
};

test.each(LOGIN_PATHS)('4.1 POST %s opens one session', async (path) => {
  const { pk, username } = await shop.makeUser();
  await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(await shop.sql('select user_pk from session')).toEqual([{ user_pk: pk }]);
});

test('4.1 POST /token compares the username exactly', async () => {
  await shop.makeUser({ username: 'alice' });
  expect(
    outcomeOf(
      await shop.rest('POST', '/token', { form: { username: 'Alice', password: PASSWORD } }),
    ),
  ).toEqual(WRONG);
});

test('4.1 POST /token rejects an empty username with 422', async () => {
  const body = 'username=&password=x';
  const answer = await shop.rest('POST', '/token', {
    body,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [{ type: expect.any(String), loc: ['body', 'username'], msg: expect.any(String) }],
  });
});

test.each([
  ['all scopes of the user where no `scope` is sent', {}, ['products:write', 'blog:write']],
  ['those of the user that `scope` names', { scope: 'users:read  blog:write' }, ['blog:write']],
])('4.1 POST /token gives a token with %s', async (_what, extra, scopes) => {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const { body } = await shop.rest('POST', '/token', {
    form: { username, password: PASSWORD, ...extra },
  });
  expect(claimsOf(body.access_token)['scopes']).toEqual(scopes);
});

test.each(LOGIN_PATHS)(
  '4.1 POST %s with offline_access adds expires_in, refresh_token and scope',
  async (path) => {
    const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const answer = await shop.rest('POST', path, {
      form: { username, password: PASSWORD, scope: 'offline_access' },
    });
    expect(answer.body).toEqual({
      access_token: expect.any(String),
      token_type: 'bearer',
      expires_in: 1800,
      refresh_token: expect.any(String),
      scope: 'products:write blog:write offline_access',
    });
  },
);

test.each(LOGIN_PATHS)(
  '4.1 POST %s with grant_type=refresh_token returns new tokens of the same session',
  async (path) => {
    const first = await signIn();
    const answer = await refresh(first.refresh_token, path);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...first,
      access_token: expect.any(String),
      refresh_token: expect.any(String),
    });
    expect(answer.body.refresh_token).not.toBe(first.refresh_token);
    expect(claimsOf(answer.body.access_token)).toMatchObject({
      sid: claimsOf(first.access_token)['sid'],
    });
    expect(answer.headers.get('cache-control')).toBe('no-store');
  },
);

test('4.1 a refresh keeps the scopes to which the login was narrowed', async () => {
  const { refresh_token } = await signIn('offline_access blog:write');
  const { body } = await refresh(refresh_token);
  expect(body.scope).toBe('blog:write offline_access');
  expect(claimsOf(body.access_token)['scopes']).toEqual(['blog:write']);
});

test('4.1 a refresh token used again after REFRESH_REUSE_SECONDS is rejected and ends its session', async () => {
  const { refresh_token } = await signIn();
  const { body: second } = await refresh(refresh_token);
  shop.advanceClock(REUSE_MS);
  expect(outcomeOf(await refresh(refresh_token))).toEqual(REFRESH_REJECTED);
  expect(outcomeOf(await shop.rest('GET', '/users/me/', { token: second.access_token }))).toEqual(
    REJECTED,
  );
  expect(outcomeOf(await refresh(second.refresh_token))).toEqual(REFRESH_REJECTED);
});

test('4.1 a refresh token used again after REFRESH_REUSE_SECONDS ends no other session', async () => {
  const { access_token, refresh_token } = await signIn();
  const username = String(claimsOf(access_token).sub);
  const { body: other } = await shop.rest('POST', '/token', {
    form: { username, password: PASSWORD },
  });
  await refresh(refresh_token);
  shop.advanceClock(REUSE_MS);
  expect(outcomeOf(await refresh(refresh_token))).toEqual(REFRESH_REJECTED);
  expect(await shop.rest('GET', '/users/me/', { token: other.access_token })).toMatchObject({
    status: 200,
  });
});

test('4.1 a refresh is a use of the session, so that the next may come 13 days later', async () => {
  const { refresh_token } = await signIn();
  shop.advanceClock(13 * DAY);
  const { body } = await refresh(refresh_token);
  shop.advanceClock(13 * DAY);
  expect(await refresh(body.refresh_token)).toMatchObject({ status: 200 });
});

test('4.1 a refresh token of a disabled user is rejected with 400', async () => {
  const { refresh_token } = await signIn();
  await shop.sql('update "user" set disabled = true');
  expect(await refresh(refresh_token)).toMatchObject({
    status: 400,
    body: { detail: 'Inactive user' },
  });
});

test('4.1 grant_type=refresh_token names the refresh_token that is missing', async () => {
  const { status, body } = await shop.rest('POST', '/token', {
    form: { grant_type: 'refresh_token' },
  });
  expect(status).toBe(422);
  expect(body).toMatchObject({
    detail: [{ type: 'missing', loc: ['body', 'refresh_token'], msg: 'Field required' }],
  });
});

test('4.1 grant_type=refresh_token rejects a value that is not a token', async () => {
  expect(outcomeOf(await refresh('no token'))).toEqual(REFRESH_REJECTED);
});

test('4.1 GET /users/me/ returns null for a missing email and full_name', async () => {
  const user = await shop.makeUser({ username: 'alice', email: null, fullName: null });
  const { body } = await shop.rest('GET', '/users/me/', { as: user });
  expect(body).toEqual({ username: 'alice', email: null, full_name: null, disabled: false });
});

test('4.1 GET /users/me/items/ returns the items of the user of the bearer token', async () => {
  const alice = await shop.makeUser({ username: 'alice' });
  await shop.makeItem(alice, 'Foo');
  await shop.makeItem(await shop.makeUser(), 'Of somebody else');
  await shop.makeItem(alice, 'Bar');
  const answer = await shop.rest('GET', '/users/me/items/', { as: alice });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual([
    { item_id: 'Foo', owner: 'alice' },
    { item_id: 'Bar', owner: 'alice' },
  ]);
});

test('4.1 GET /users/me/items/ returns an empty array to a user without items', async () => {
  expect(await shop.rest('GET', '/users/me/items/', { as: await shop.makeUser() })).toMatchObject({
    status: 200,
    body: [],
  });
});

test("4.1 GET /blog returns the published entries of everyone and the caller's own drafts", async () => {
  const [alice, bob] = [
    await shop.makeUser({ username: 'alice' }),
    await shop.makeUser({ username: 'bob' }),
  ];
  const [byAlice, byBob] = [alice, bob].map(({ username, email }) => ({
    body: 'Some text.',
    creator: { username, email },
  }));
  for (const [creator, name] of [[alice, 'alice'] as const, [bob, 'bob'] as const]) {
    await shop.makeEntry(creator, {
      title: `published by ${name}`,
      body: 'Some text.',
      published: true,
    });
    await shop.makeEntry(creator, {
      title: `draft of ${name}`,
      body: 'Some text.',
      published: false,
    });
  }
  const { status, body } = await shop.rest('GET', '/blog', { as: alice });
  expect(status).toBe(200);
  expect((body as { title: string }[]).toSorted((a, b) => a.title.localeCompare(b.title))).toEqual([
    { title: 'draft of alice', published: false, ...byAlice },
    { title: 'published by alice', published: true, ...byAlice },
    { title: 'published by bob', published: true, ...byBob },
  ]);
});

test('4.1 GET /blog returns the newest entry first', async () => {
  const alice = await shop.makeUser();
  for (const [title, year] of [
    ['second', 2],
    ['third', 3],
    ['first', 1],
  ] as const) {
    await shop.makeEntry(alice, { title, createdAt: new Date(Date.UTC(2020 + year, 0)) });
  }
  const { body } = await shop.rest('GET', '/blog', { as: alice });
  expect((body as { title: string }[]).map(({ title }) => title)).toEqual([
    'third',
    'second',
    'first',
  ]);
});

test('4.1 GET /blog returns an empty array where there is no entry', async () => {
  expect(await shop.rest('GET', '/blog', { as: await shop.makeUser() })).toMatchObject({
    status: 200,
    body: [],
  });
});

function outcomeOf({ status, body, headers }: Answer) {
  return { status, body, challenge: headers.get('www-authenticate') };
}

function claimsOf(token: string): jwt.JwtPayload {
  return jwt.decode(token) as jwt.JwtPayload;
}

interface Tokens {
  access_token: string;
  refresh_token: string;
}

async function signIn(scope = 'offline_access'): Promise<Tokens> {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const { body } = await shop.rest('POST', '/token', {
    form: { username, password: PASSWORD, scope },
  });
  return body as Tokens;
}

function refresh(refreshToken: string, path = '/token'): Promise<Answer> {
  return shop.rest('POST', path, {
    form: { grant_type: 'refresh_token', refresh_token: refreshToken },
  });
}
