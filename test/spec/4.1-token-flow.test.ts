import { expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const DAY = 86_400_000;
const LOGIN_PATHS = ['/token', '/login'];

test.each(LOGIN_PATHS)('4.1 POST %s opens one session', async (path) => {
  const { pk, username } = await shop.makeUser();
  await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(await shop.sql('select user_pk::int from session')).toEqual([{ user_pk: pk }]);
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

test('4.1 GET /users/me/ returns null for a missing email and full_name', async () => {
  const user = await shop.makeUser({ username: 'alice', email: null, fullName: null });
  const { body } = await shop.rest('GET', '/users/me/', { as: user });
  expect(body).toEqual({ username: 'alice', email: null, full_name: null, disabled: false });
});

test('4.1 GET /users/me/items/ returns an empty array to a user without items', async () => {
  expect(await shop.rest('GET', '/users/me/items/', { as: await shop.makeUser() })).toMatchObject({
    status: 200,
    body: [],
  });
});

test('4.1 GET /blog returns an empty array where there is no entry', async () => {
  expect(await shop.rest('GET', '/blog', { as: await shop.makeUser() })).toMatchObject({
    status: 200,
    body: [],
  });
});

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
