import { describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const DAY = 86_400_000;
const DOORS = ['/token', '/login'];
const WRONG = { status: 401, body: { detail: 'Incorrect username or password' }, challenge: 'Bearer' };
const REFUSED = { status: 401, body: { detail: 'Could not validate credentials' }, challenge: 'Bearer error="invalid_token"' };
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' }, challenge: 'Bearer' };

test.each(DOORS)('4.1 POST %s answers access_token and token_type to a form with username and password', async (path) => {
  const { username } = await shop.makeUser();
  const answer = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ access_token: expect.any(String), token_type: 'bearer' });
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
});

test.each(DOORS)('4.1 POST %s is served with a slash at its end, too', async (path) => {
  const { username } = await shop.makeUser();
  expect(await shop.rest('POST', `${path}/`, { form: { username, password: PASSWORD } })).toMatchObject({ status: 200 });
});

test.each(DOORS)('4.1 POST %s answers what nobody may keep', async (path) => {
  const { username } = await shop.makeUser();
  const { headers } = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(headers.get('cache-control')).toBe('no-store');
});

test.each(DOORS)('4.1 POST %s gives a token that opens the protected rows', async (path) => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(await shop.rest('GET', '/users/me/', { token: body.access_token })).toMatchObject({ status: 200, body: { username } });
});

test.each(DOORS)('4.1 POST %s opens one session', async (path) => {
  const { pk, username } = await shop.makeUser();
  await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(await shop.sql('select user_pk from session')).toEqual([{ user_pk: pk }]);
});

test.each(DOORS)('4.1 POST %s refuses a wrong password with 401, detail and WWW-Authenticate: Bearer', async (path) => {
  const { username } = await shop.makeUser();
  expect(said(await shop.rest('POST', path, { form: { username, password: 'wrong' } }))).toEqual(WRONG);
});

test.each(DOORS)('4.1 POST %s answers to an unknown user as to a wrong password, to the header', async (path) => {
  const { username } = await shop.makeUser();
  const wrong = await shop.rest('POST', path, { form: { username, password: 'wrong' } });
  const unknown = await shop.rest('POST', path, { form: { username: 'nobody', password: 'wrong' } });
  expect(said(unknown)).toEqual(WRONG);
  expect(unknown.text).toBe(wrong.text);
  expect(headersOf(unknown)).toEqual(headersOf(wrong));
});

test.each(DOORS)('4.1 POST %s opens no session for a wrong password', async (path) => {
  const { username } = await shop.makeUser();
  await shop.rest('POST', path, { form: { username, password: 'wrong' } });
  expect(await shop.sql('select sid from session')).toEqual([]);
});

test.each(DOORS)('4.1 POST %s refuses a disabled user with the right password with 400', async (path) => {
  const { username } = await shop.makeUser({ disabled: true });
  const answer = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  expect(answer).toMatchObject({ status: 400, body: { detail: 'Inactive user' } });
});

test.each(DOORS)('4.1 POST %s does not tell with a wrong password that the user is disabled', async (path) => {
  const { username } = await shop.makeUser({ disabled: true });
  expect(said(await shop.rest('POST', path, { form: { username, password: 'wrong' } }))).toEqual(WRONG);
});

test.each(DOORS)('4.1 POST %s names the fields that are missing', async (path) => {
  const { status, body } = await shop.rest('POST', path, { form: {} });
  expect(status).toBe(422);
  expect(body).toEqual({
    detail: [
      { type: 'missing', loc: ['body', 'username'], msg: 'Field required' },
      { type: 'missing', loc: ['body', 'password'], msg: 'Field required' },
    ],
  });
});

test.each(DOORS)('4.1 POST %s takes a form only', async (path) => {
  const { username } = await shop.makeUser();
  const answer = await shop.rest('POST', path, { json: { username, password: PASSWORD } });
  expect(answer).toMatchObject({ status: 415, body: { detail: expect.any(String) } });
});

test('4.1 POST /token ignores fields that it does not know', async () => {
  const { username } = await shop.makeUser();
  const form = { username, password: PASSWORD, grant_type: 'password', client_id: 'shop', disabled: 'true' };
  const answer = await shop.rest('POST', '/token', { form });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ access_token: expect.any(String), token_type: 'bearer' });
});

test('4.1 POST /token compares the username exactly', async () => {
  await shop.makeUser({ username: 'alice' });
  expect(said(await shop.rest('POST', '/token', { form: { username: 'Alice', password: PASSWORD } }))).toEqual(WRONG);
});

test('4.1 POST /token compares the password exactly', async () => {
  const { username } = await shop.makeUser();
  expect(said(await shop.rest('POST', '/token', { form: { username, password: ` ${PASSWORD} ` } }))).toEqual(WRONG);
});

test('4.1 POST /token refuses an empty password as a wrong one', async () => {
  const { username } = await shop.makeUser();
  expect(said(await shop.rest('POST', '/token', { form: { username, password: '' } }))).toEqual(WRONG);
});

test('4.1 POST /token refuses a password that only begins like the right one of 72 bytes', async () => {
  const { username } = await shop.makeUser({ password: 'p'.repeat(72) });
  expect(said(await shop.rest('POST', '/token', { form: { username, password: `${'p'.repeat(72)}X` } }))).toEqual(WRONG);
});

test('4.1 POST /token refuses a user who has no password', async () => {
  const { username } = await shop.makeUser({ password: null });
  expect(said(await shop.rest('POST', '/token', { form: { username, password: PASSWORD } }))).toEqual(WRONG);
});

test.each([
  ['an empty username', 'username=&password=x', 'username'],
  ['a username with NUL', 'username=a%00&password=x', 'username'],
  ['two usernames', 'username=a&username=b&password=x', 'username'],
  ['a grant_type that there is none of', 'username=a&password=x&grant_type=x', 'grant_type'],
])('4.1 POST /token refuses %s with 422', async (_what, body, field) => {
  const answer = await shop.rest('POST', '/token', { body, headers: { 'Content-Type': 'application/x-www-form-urlencoded' } });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({ detail: [{ type: expect.any(String), loc: ['body', field], msg: expect.any(String) }] });
});

test('4.1 POST /token refuses a form that is too large with 413', async () => {
  const answer = await shop.rest('POST', '/token', { form: { username: 'a', password: 'x'.repeat(5_000) } });
  expect(answer).toMatchObject({ status: 413, body: { detail: expect.any(String) } });
});

test('4.1 POST /token gives a token with all scopes of the user where no scope is asked for', async () => {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  expect(claimsOf(body.access_token)['scopes']).toEqual(['products:write', 'blog:write']);
});

test.each([
  ['those of the user that `scope` names', 'users:read  blog:write', ['blog:write']],
  ['none where `scope` names no scope of ours', 'everything', []],
])('4.1 POST /token gives a token with %s', async (_what, scope, scopes) => {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD, scope } });
  expect(claimsOf(body.access_token)['scopes']).toEqual(scopes);
});

test('4.1 POST /token with `scope` gives a token that may do no more than that', async () => {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD, scope: 'blog:write' } });
  const json = { name: 'Tea', barcode: shop.newBarcode(), price: 1 };
  const answer = await shop.rest('POST', '/api/v1/shop/product/', { token: body.access_token, json });
  expect(answer).toMatchObject({ status: 403, body: { detail: expect.stringContaining('products:write') } });
});

test.each(DOORS)('4.1 POST %s with offline_access adds expires_in, refresh_token and scope', async (path) => {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const answer = await shop.rest('POST', path, { form: { username, password: PASSWORD, scope: 'offline_access' } });
  expect(answer.body).toEqual({
    access_token: expect.any(String),
    token_type: 'bearer',
    expires_in: 1800,
    refresh_token: expect.any(String),
    scope: 'products:write blog:write',
  });
});

test.each(DOORS)('4.1 POST %s with grant_type=refresh_token answers new tokens of the same session', async (path) => {
  const first = await signIn();
  const answer = await refresh(first.refresh_token, path);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ ...first, access_token: expect.any(String), refresh_token: expect.any(String) });
  expect(answer.body.refresh_token).not.toBe(first.refresh_token);
  expect(claimsOf(answer.body.access_token)).toMatchObject({ sid: claimsOf(first.access_token)['sid'] });
  expect(answer.headers.get('cache-control')).toBe('no-store');
});

test('4.1 a refreshed access token opens the protected rows', async () => {
  const { refresh_token } = await signIn();
  const { body } = await refresh(refresh_token);
  expect(await shop.rest('GET', '/users/me/', { token: body.access_token })).toMatchObject({ status: 200 });
});

test('4.1 a refresh keeps the scopes to which the login was narrowed', async () => {
  const { refresh_token } = await signIn('offline_access blog:write');
  const { body } = await refresh(refresh_token);
  expect(body.scope).toBe('blog:write');
  expect(claimsOf(body.access_token)['scopes']).toEqual(['blog:write']);
});

test('4.1 a refresh token used twice is refused and ends its session', async () => {
  const { refresh_token } = await signIn();
  const { body: second } = await refresh(refresh_token);
  expect(said(await refresh(refresh_token))).toEqual(REFUSED);
  expect(said(await shop.rest('GET', '/users/me/', { token: second.access_token }))).toEqual(REFUSED);
  expect(said(await refresh(second.refresh_token))).toEqual(REFUSED);
});

test('4.1 a refresh token used twice ends no other session', async () => {
  const { access_token, refresh_token } = await signIn();
  const username = String(claimsOf(access_token).sub);
  const { body: other } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  await refresh(refresh_token);
  await refresh(refresh_token);
  expect(await shop.rest('GET', '/users/me/', { token: other.access_token })).toMatchObject({ status: 200 });
});

test('4.1 a refresh token used ten times at once is good once at most, and its session ends', async () => {
  const { access_token, refresh_token } = await signIn();
  const answers = await Promise.all(Array.from({ length: 10 }, () => refresh(refresh_token)));
  const refused = answers.filter(({ status }) => status === 401);
  expect(refused.length).toBeGreaterThanOrEqual(9);
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(10 - refused.length);
  expect(said(await shop.rest('GET', '/users/me/', { token: access_token }))).toEqual(REFUSED);
});

test('4.1 a refresh token is refused after logout', async () => {
  const { access_token, refresh_token } = await signIn();
  await shop.rest('POST', '/api/v2/auth/login', { token: access_token });
  expect(said(await refresh(refresh_token))).toEqual(REFUSED);
});

test('4.1 a refresh token is refused once its session was idle for 14 days', async () => {
  const { refresh_token } = await signIn();
  shop.pass(14 * DAY);
  expect(said(await refresh(refresh_token))).toEqual(REFUSED);
});

test('4.1 a refresh is a use of the session, so that the next may come 13 days later', async () => {
  const { refresh_token } = await signIn();
  shop.pass(13 * DAY);
  const { body } = await refresh(refresh_token);
  shop.pass(13 * DAY);
  expect(await refresh(body.refresh_token)).toMatchObject({ status: 200 });
});

test('4.1 a refresh token of a disabled user is refused with 400', async () => {
  const { refresh_token } = await signIn();
  await shop.sql('update "user" set disabled = true');
  expect(await refresh(refresh_token)).toMatchObject({ status: 400, body: { detail: 'Inactive user' } });
});

test('4.1 grant_type=refresh_token names the refresh_token that is missing', async () => {
  const { status, body } = await shop.rest('POST', '/token', { form: { grant_type: 'refresh_token' } });
  expect(status).toBe(422);
  expect(body).toEqual({ detail: [{ type: 'missing', loc: ['body', 'refresh_token'], msg: 'Field required' }] });
});

test('4.1 grant_type=refresh_token refuses what is no token', async () => {
  expect(said(await refresh('no token'))).toEqual(REFUSED);
});

test('4.1 grant_type=refresh_token refuses an access token', async () => {
  const { access_token } = await signIn();
  expect(said(await refresh(access_token))).toEqual(REFUSED);
});

test('4.1 a refresh token is no access token', async () => {
  const { refresh_token } = await signIn();
  expect(said(await shop.rest('GET', '/users/me/', { token: refresh_token }))).toEqual(REFUSED);
});

test.each(['/users/me/', '/users/me'])('4.1 GET %s answers the user of the bearer token, without hashed_password', async (path) => {
  const user = await shop.makeUser({ username: 'alice', email: 'alice@shop.example', fullName: 'Alice Liddell' });
  const answer = await shop.rest('GET', path, { as: user });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ username: 'alice', email: 'alice@shop.example', full_name: 'Alice Liddell', disabled: false });
});

test('4.1 GET /users/me/ answers null for an email and a full_name that the user has not', async () => {
  const user = await shop.makeUser({ username: 'alice', email: null, fullName: null });
  const { body } = await shop.rest('GET', '/users/me/', { as: user });
  expect(body).toEqual({ username: 'alice', email: null, full_name: null, disabled: false });
});

test.each(['/users/me/items/', '/users/me/items'])('4.1 GET %s answers the items of the user of the bearer token', async (path) => {
  const alice = await shop.makeUser({ username: 'alice' });
  await shop.makeItem(alice, 'Foo');
  await shop.makeItem(await shop.makeUser(), 'Of somebody else');
  await shop.makeItem(alice, 'Bar');
  const answer = await shop.rest('GET', path, { as: alice });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual([
    { item_id: 'Foo', owner: 'alice' },
    { item_id: 'Bar', owner: 'alice' },
  ]);
});

test('4.1 GET /users/me/items/ answers an empty array to a user without items', async () => {
  expect(await shop.rest('GET', '/users/me/items/', { as: await shop.makeUser() })).toMatchObject({ status: 200, body: [] });
});

test.each(['/users/me/', '/users/me/items/', '/blog'])(
  '4.1 GET %s answers without a token that the caller is not authenticated',
  async (path) => {
    expect(said(await shop.rest('GET', path))).toEqual(ANONYMOUS);
  },
);

test.each(['/users/me/', '/users/me/items/', '/blog'])('4.1 GET %s refuses a token that cannot be verified', async (path) => {
  expect(said(await shop.rest('GET', path, { token: 'garbage' }))).toEqual(REFUSED);
});

test('4.1 GET /login answers that the method is not allowed', async () => {
  const { status, body, headers } = await shop.rest('GET', '/login');
  expect(status).toBe(405);
  expect(body).toEqual({ detail: 'Method "GET" not allowed.' });
  expect(headers.get('allow')).toBe('POST, OPTIONS');
});

test('4.1 GET /blog answers the blog entries with their creators', async () => {
  const alice = await shop.makeUser({ username: 'alice', email: 'alice@shop.example' });
  await shop.makeEntry(alice, { title: 'First', body: 'Some text.', published: true });
  const answer = await shop.rest('GET', '/blog', { as: await shop.makeUser() });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual([
    { title: 'First', body: 'Some text.', published: true, creator: { username: 'alice', email: 'alice@shop.example' } },
  ]);
});

test("4.1 GET /blog answers the published entries of everyone and the caller's own drafts", async () => {
  const [alice, bob] = [await shop.makeUser(), await shop.makeUser()];
  for (const [creator, name] of [[alice, 'alice'] as const, [bob, 'bob'] as const]) {
    await shop.makeEntry(creator, { title: `published by ${name}`, published: true });
    await shop.makeEntry(creator, { title: `draft of ${name}`, published: false });
  }
  expect(titles(await shop.rest('GET', '/blog', { as: alice })).toSorted()).toEqual([
    'draft of alice',
    'published by alice',
    'published by bob',
  ]);
});

test('4.1 GET /blog answers the newest entry first', async () => {
  const alice = await shop.makeUser();
  for (const [title, year] of [
    ['second', 2],
    ['third', 3],
    ['first', 1],
  ] as const) {
    await shop.makeEntry(alice, { title, createdAt: new Date(Date.UTC(2020 + year, 0)) });
  }
  expect(titles(await shop.rest('GET', '/blog', { as: alice }))).toEqual(['third', 'second', 'first']);
});

test('4.1 GET /blog answers an empty array where there is no entry', async () => {
  expect(await shop.rest('GET', '/blog', { as: await shop.makeUser() })).toMatchObject({ status: 200, body: [] });
});

describe('under BASE_PATH', () => {
  const based = useShop({ BASE_PATH: '/shop' });

  test('4.1 every path stands under {base_url}, and nowhere else', async () => {
    const token = based.tokenOf(await based.makeUser());
    expect(await based.rest('GET', '/users/me/', { token })).toMatchObject({ status: 200 });
    const outside = await fetch(new URL('/users/me/', based.url), { headers: { Authorization: `Bearer ${token}` } });
    expect(outside.status).toBe(404);
  });
});

function said({ status, body, headers }: Answer) {
  return { status, body, challenge: headers.get('www-authenticate') };
}

function headersOf({ headers }: Answer) {
  const { date: _date, 'x-request-id': _id, ...stable } = Object.fromEntries(headers);
  return stable;
}

function claimsOf(token: string): jwt.JwtPayload {
  return jwt.decode(token) as jwt.JwtPayload;
}

function titles({ body }: Answer): string[] {
  return (body as { title: string }[]).map(({ title }) => title);
}

interface Tokens {
  access_token: string;
  refresh_token: string;
}

async function signIn(scope = 'offline_access'): Promise<Tokens> {
  const { username } = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD, scope } });
  return body as Tokens;
}

function refresh(refreshToken: string, path = '/token'): Promise<Answer> {
  return shop.rest('POST', path, { form: { grant_type: 'refresh_token', refresh_token: refreshToken } });
}
