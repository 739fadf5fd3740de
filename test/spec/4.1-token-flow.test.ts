import { expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const DAY = 86_400_000;

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
