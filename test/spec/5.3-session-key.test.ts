import { createHash } from 'node:crypto';
import { describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/auth/accounts.service.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const DAY = 86_400_000;
const NO_KEY = 'A'.repeat(43);
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' }, challenge: 'Bearer' };

test.each(['X-SESSION-ID', 'X-SESSIONID', 'x-session-id', 'x-sessionid'])(
  '5.3.1 the header %s opens a protected endpoint',
  async (name) => {
    const { username } = await shop.makeUser();
    const answer = await shop.rest('GET', '/users/me/', { headers: { [name]: await signIn(username) } });
    expect(answer).toMatchObject({ status: 200, body: { username } });
  },
);

test('5.3.1 both headers with the same key open it, too', async () => {
  const key = await signIn();
  expect(said(await me({ 'X-SESSION-ID': key, 'X-SESSIONID': key }))).toEqual({ status: 200 });
});

test('5.3.1 both headers with different keys are refused, though both are valid', async () => {
  const [one, other] = [await signIn(), await signIn()];
  expect(said(await me({ 'X-SESSION-ID': one, 'X-SESSIONID': other }))).toEqual(ANONYMOUS);
  expect(said(await me({ 'X-SESSION-ID': one, 'X-SESSIONID': '' }))).toEqual(ANONYMOUS);
});

test('5.3.1 a key in the query, in a cookie or as a bearer token is no key', async () => {
  const key = await signIn();
  expect(said(await shop.rest('GET', `/users/me/?session_key=${key}`))).toEqual(ANONYMOUS);
  expect(said(await me({ Cookie: `session_key=${key}; X-SESSION-ID=${key}` }))).toEqual(ANONYMOUS);
  expect(await shop.rest('GET', '/users/me/', { token: key })).toMatchObject({
    status: 401,
    body: { detail: 'Could not validate credentials' },
  });
});

test('5.3.2 a key of a session that exists is valid', async () => {
  expect(said(await me({ 'X-SESSION-ID': await signIn() }))).toEqual({ status: 200 });
});

test.each(['', NO_KEY, 'x'.repeat(600), "' or 1=1 --"])(
  '5.3.2 with the key %j, which no session has, the caller is unauthenticated',
  async (key) => {
    await signIn();
    expect(said(await me({ 'X-SESSION-ID': key }))).toEqual(ANONYMOUS);
  },
);

test('5.3.2 a key is compared exactly', async () => {
  const key = await signIn();
  expect(said(await me({ 'X-SESSION-ID': key.slice(0, -1) }))).toEqual(ANONYMOUS);
  expect(said(await me({ 'X-SESSION-ID': key.toUpperCase() }))).toEqual(ANONYMOUS);
  expect(said(await me({ 'X-SESSION-ID': key.toLowerCase() }))).toEqual(ANONYMOUS);
});

test('5.3.2 after logout the key is not valid', async () => {
  const key = await signIn();
  await shop.rest('POST', '/session/logout', { json: { session_key: key } });
  expect(said(await me({ 'X-SESSION-ID': key }))).toEqual(ANONYMOUS);
});

test('5.3.2 the key of a user who was deleted is not valid', async () => {
  const key = await signIn();
  await shop.sql('delete from "user"');
  expect(said(await me({ 'X-SESSION-ID': key }))).toEqual(ANONYMOUS);
});

test('5.3.2 a key is not valid once its session was idle for 14 days', async () => {
  const key = await signIn();
  shop.pass(14 * DAY);
  expect(said(await me({ 'X-SESSION-ID': key }))).toEqual(ANONYMOUS);
});

test('5.3.2 each use of a key gives it 14 days more', async () => {
  const key = await signIn();
  shop.pass(13 * DAY);
  expect(said(await me({ 'X-SESSION-ID': key }))).toEqual({ status: 200 });
  shop.pass(13 * DAY);
  expect(said(await me({ 'X-SESSION-ID': key }))).toEqual({ status: 200 });
});

test('5.3.2 a key is not valid after 90 days, however much it is used', async () => {
  const key = await signIn();
  for (let day = 10; day <= 80; day += 10) {
    shop.pass(10 * DAY);
    expect(said(await me({ 'X-SESSION-ID': key }))).toEqual({ status: 200 });
  }
  shop.pass(10 * DAY);
  expect(said(await me({ 'X-SESSION-ID': key }))).toEqual(ANONYMOUS);
});

test('5.3.2 a key is 256 random bits in base64url', async () => {
  const { username } = await shop.makeUser();
  const keys = [await signIn(username), await signIn(username)];
  expect(keys.map((key) => Buffer.from(key, 'base64url').length)).toEqual([32, 32]);
  expect(keys).toEqual([expect.stringMatching(/^[\w-]{43}$/), expect.stringMatching(/^[\w-]{43}$/)]);
  expect(keys[0]?.slice(0, 8)).not.toBe(keys[1]?.slice(0, 8));
});

test('5.3.2 of a key its SHA-256 alone is stored', async () => {
  const key = await signIn();
  const [row] = await shop.sql(`select encode(key_hash, 'hex') as hash, session::text as everything from session`);
  expect(row?.['hash']).toBe(createHash('sha256').update(key).digest('hex'));
  expect(row?.['everything']).not.toContain(key);
  expect(row?.['everything']).not.toContain(Buffer.from(key).toString('hex'));
});

test('5.3.2 a key is not in the log', async () => {
  const key = await signIn();
  await me({ 'X-SESSION-ID': key });
  await shop.rest('POST', '/session/logout', { json: { session_key: key } });
  expect(shop.logged.filter((line) => line.includes('auth.'))).toHaveLength(2);
  expect(shop.logged.filter((line) => line.includes(key))).toEqual([]);
});

/** The protected endpoints, and what they answer. */
const PROTECTED: [string, (credentials: RequestOptions) => Promise<Answer>, number][] = [
  ['GET /users/me/', (credentials) => shop.rest('GET', '/users/me/', credentials), 200],
  ['GET /users/me/items/', (credentials) => shop.rest('GET', '/users/me/items/', credentials), 200],
  ['GET /blog', (credentials) => shop.rest('GET', '/blog', credentials), 200],
  ['GET /api/users', (credentials) => shop.rest('GET', '/api/users', credentials), 200],
  ['POST /api/v1/shop/product/', (credentials) => shop.rest('POST', '/api/v1/shop/product/', { json: product(), ...credentials }), 201],
  ['POST /api/v2/auth/login', (credentials) => shop.rest('POST', '/api/v2/auth/login', credentials), 200],
];

test.each(PROTECTED)('5.3.3 %s takes a session key', async (_row, ask, status) => {
  expect(await ask({ sessionKey: await signIn() })).toMatchObject({ status });
});

test.each(PROTECTED)('5.3.3 %s takes a bearer token', async (_row, ask, status) => {
  expect(await ask({ token: await issuedToken() })).toMatchObject({ status });
});

test.each(PROTECTED)('5.3.3 %s refuses a caller without credentials', async (_row, ask) => {
  expect(said(await ask({}))).toEqual(ANONYMOUS);
});

test.each(PROTECTED)('5.3.3 %s refuses a key that no session has', async (_row, ask) => {
  expect(said(await ask({ sessionKey: NO_KEY }))).toEqual(ANONYMOUS);
});

test.each(PROTECTED)('5.3.3 %s refuses a disabled user with 400, by session key', async (_row, ask) => {
  const sessionKey = await signIn();
  await shop.sql('update "user" set disabled = true');
  const { status, body } = await ask({ sessionKey });
  expect({ status, body }).toEqual({ status: 400, body: { detail: 'Inactive user' } });
});

test('5.3.3 GraphQL takes a session key', async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.graphql('{ me { username } }', {}, { sessionKey: await signIn(username) });
  expect(body).toEqual({ data: { me: { username } } });
});

test('5.3.3 GraphQL takes a bearer token', async () => {
  const user = await shop.makeUser();
  const { body } = await shop.graphql('{ me { username } }', {}, { as: user });
  expect(body).toEqual({ data: { me: { username: user.username } } });
});

test('5.3.3 a key that no session has fails a public row, too', async () => {
  expect(said(await shop.rest('GET', '/api/v2/shop/products', { sessionKey: NO_KEY }))).toEqual(ANONYMOUS);
});

test('5.3.3 where Authorization is present it alone decides who calls', async () => {
  const [alice, bob] = [await shop.makeUser(), await shop.makeUser()];
  const { body } = await shop.rest('GET', '/users/me/', { as: alice, sessionKey: await signIn(bob.username) });
  expect(body).toMatchObject({ username: alice.username });
});

test('5.3.3 where Authorization is present a session key does not make up for a wrong token', async () => {
  const { status, body } = await shop.rest('GET', '/users/me/', { token: 'garbage', sessionKey: await signIn() });
  expect({ status, body }).toEqual({ status: 401, body: { detail: 'Could not validate credentials' } });
});

test('5.3.3 where Authorization is present, though it is no bearer token, the session key is not looked at', async () => {
  expect(said(await me({ Authorization: 'Basic YWxpY2U6eA==', 'X-SESSION-ID': await signIn() }))).toEqual(ANONYMOUS);
});

test('5.3.3 a user whom the operator disabled, which ends the sessions, is refused with 400, not 401', async () => {
  const { username } = await shop.makeUser();
  const sessionKey = await signIn(username);
  await accounts.disable(shop.context(), username);
  const { status, body } = await shop.rest('GET', '/users/me/', { sessionKey });
  expect({ status, body }).toEqual({ status: 400, body: { detail: 'Inactive user' } });
});

test('5.3.3 a session that ended when its user was disabled stays ended when the user is enabled', async () => {
  const { username } = await shop.makeUser();
  const sessionKey = await signIn(username);
  await accounts.disable(shop.context(), username);
  await accounts.enable(shop.context(), username);
  expect(said(await shop.rest('GET', '/users/me/', { sessionKey }))).toEqual(ANONYMOUS);
});

describe('with other lifetimes', () => {
  const brief = useShop({ SESSION_IDLE_DAYS: '2', SESSION_LIFETIME_DAYS: '3' });

  test('5.3.2 the idle lifetime and the absolute one may be set', async () => {
    const { username } = await brief.makeUser();
    const json = { username, password: PASSWORD };
    const [used, idle] = [await brief.rest('POST', '/session/login', { json }), await brief.rest('POST', '/session/login', { json })];
    const ask = async ({ body }: Answer) => said(await brief.rest('GET', '/users/me/', { sessionKey: body.session_key }));
    brief.pass(DAY);
    expect(await ask(used)).toEqual({ status: 200 });
    brief.pass(DAY);
    expect(await ask(idle)).toEqual(ANONYMOUS);
    expect(await ask(used)).toEqual({ status: 200 });
    brief.pass(DAY);
    expect(await ask(used)).toEqual(ANONYMOUS);
  });
});

/** What an answer says of the key: nothing but that it was taken, or how it was refused. */
function said({ status, body, headers }: Answer) {
  return status === 200 ? { status } : { status, body, challenge: headers.get('www-authenticate') };
}

function me(headers: Record<string, string>): Promise<Answer> {
  return shop.rest('GET', '/users/me/', { headers });
}

function product() {
  return { name: 'Tea', barcode: shop.newBarcode(), price: 1 };
}

async function signIn(username?: string): Promise<string> {
  const name = username ?? (await shop.makeUser({ scopes: ['products:write'] })).username;
  const { body } = await shop.rest('POST', '/session/login', { json: { username: name, password: PASSWORD } });
  return String(body.session_key);
}

async function issuedToken(): Promise<string> {
  const { username } = await shop.makeUser({ scopes: ['products:write'] });
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  return String(body.access_token);
}
