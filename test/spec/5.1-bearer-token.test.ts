import { createHmac } from 'node:crypto';
import { describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { readConfig } from '../../src/kit/config.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const MINUTE = 60_000;
const REFUSED = { status: 401, body: { detail: 'Could not validate credentials' }, challenge: 'Bearer error="invalid_token"' };
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' }, challenge: 'Bearer' };
const INACTIVE = { status: 400, body: { detail: 'Inactive user' } };

test.each(['/token', '/login'])(
  '5.1.1 the client sends credentials to %s and receives access_token with token_type bearer',
  async (path) => {
    const { username } = await shop.makeUser();
    const { body } = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
    expect(body).toEqual({ access_token: expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/), token_type: 'bearer' });
  },
);

test.each(['Bearer', 'bearer', 'BEARER'])('5.1.2 the header Authorization: %s opens a protected endpoint', async (scheme) => {
  const user = await shop.makeUser();
  const answer = await shop.rest('GET', '/users/me/', { headers: { Authorization: `${scheme} ${shop.tokenOf(user)}` } });
  expect(answer).toMatchObject({ status: 200, body: { username: user.username } });
});

test('5.1.2 a token in the query, in a cookie or in the body is no token', async () => {
  const token = shop.tokenOf(await shop.makeUser());
  expect(said(await shop.rest('GET', `/users/me/?access_token=${token}`))).toEqual(ANONYMOUS);
  expect(said(await shop.rest('GET', '/users/me/', { headers: { Cookie: `access_token=${token}` } }))).toEqual(ANONYMOUS);
  expect(said(await shop.rest('POST', '/api/v2/auth/login', { json: { access_token: token } }))).toEqual(ANONYMOUS);
});

test('5.1.2 two Authorization headers are refused with 400', async () => {
  const bearer = `Authorization: Bearer ${shop.tokenOf(await shop.makeUser())}\r\n`;
  const answer = await shop.raw(`GET /users/me/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${bearer}${bearer}\r\n`);
  expect(answer).toMatch(/^HTTP\/1\.1 400 .*\r\n\r\n\{"detail":"[^"]+"\}$/s);
});

test('5.1.3 the token is a JWT signed with HS256 and the signing secret', async () => {
  const { header } = jwt.verify(await issuedToken(), TEST_SECRET, { complete: true });
  expect(header).toEqual({ alg: 'HS256', typ: 'JWT', kid: expect.any(String) });
});

test('5.1.3 a token that another issuer signed with the secret is taken, without a sid', async () => {
  const { username } = await shop.makeUser();
  const token = jwt.sign({ sub: username }, TEST_SECRET, { expiresIn: '5m' });
  expect(await shop.rest('GET', '/users/me/', { token })).toMatchObject({ status: 200, body: { username } });
});

test('5.1.3 a signing secret of less than 32 bytes is refused', () => {
  const configured = (secret: string) => readConfig({ SIGNING_SECRET: secret }, () => undefined).signingSecrets;
  expect(() => configured('s'.repeat(31))).toThrow('SIGNING_SECRET must have 32 bytes or more');
  expect(configured('s'.repeat(32))).toEqual(['s'.repeat(32)]);
});

test('5.1.3 there is no signing secret by default', () => {
  expect(() => readConfig({ DATABASE_URL: 'postgresql://user@host/name' }, () => undefined)).toThrow('SIGNING_SECRET');
});

test('5.1.4 the claim sub holds the username', async () => {
  expect(claimsOf(await issuedToken('alice')).sub).toBe('alice');
});

test.each(['/token', '/login'])('5.1.5 a token of %s expires 30 minutes after its issue time', async (path) => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', path, { form: { username, password: PASSWORD } });
  const { iat, exp } = claimsOf(body.access_token);
  expect(Number(exp) - Number(iat)).toBe(1800);
});

test('5.1.5 a refreshed token expires 30 minutes after its issue time', async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD, scope: 'offline_access' } });
  const refresh = { grant_type: 'refresh_token', refresh_token: String(body.refresh_token) };
  const { iat, exp } = claimsOf((await shop.rest('POST', '/token', { form: refresh })).body.access_token);
  expect(Number(exp) - Number(iat)).toBe(1800);
});

test('5.1.5 where the issuer supplies no lifetime, it is 15 minutes', async () => {
  const { iat, exp } = claimsOf(shop.tokenOf(await shop.makeUser()));
  expect(Number(exp) - Number(iat)).toBe(900);
});

test('5.1.5 a token of the token endpoint is accepted for 30 minutes, and then no more', async () => {
  const token = await issuedToken();
  shop.pass(29 * MINUTE);
  expect(await shop.rest('GET', '/users/me/', { token })).toMatchObject({ status: 200 });
  shop.pass(MINUTE);
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

/** Tokens that cannot be decoded or verified, made from a good one. */
const BROKEN: [string, (good: string) => string][] = [
  ['that is no JWT', () => 'garbage'],
  ['of two segments', (good) => good.split('.').slice(0, 2).join('.')],
  ['of four segments', (good) => `${good}.x`],
  ['of empty segments', () => '..'],
  ['that is the word null', () => 'null'],
  ['without a signature', (good) => `${good.split('.').slice(0, 2).join('.')}.`],
  ['with the signature of another token', (good) => `${good.split('.').slice(0, 2).join('.')}.${signed({ sub: 'x' }).split('.')[2]}`],
  ['with a character of its signature changed', (good) => good.slice(0, -10) + (good.at(-10) === 'A' ? 'B' : 'A') + good.slice(-9)],
  ['with its signature written in another way', (good) => good.slice(0, -1) + nextOf(good.slice(-1))],
  ['with padding', (good) => `${good}=`],
  [
    'with its payload changed',
    (good) => good.replace(/\.[^.]+\./, `.${signed({ ...claimsOf(good), scopes: ['users:read'] }).split('.')[1]}.`),
  ],
  ['signed with another secret', (good) => jwt.sign(claimsOf(good), 'another secret of enough bytes to be one')],
  ['signed with an empty secret', signedWithNothing],
  ['with the algorithm none', (good) => jwt.sign(claimsOf(good), '', { algorithm: 'none' })],
  ['signed with HS384 and the secret', (good) => jwt.sign(claimsOf(good), TEST_SECRET, { algorithm: 'HS384' })],
  ['signed with HS512 and the secret', (good) => jwt.sign(claimsOf(good), TEST_SECRET, { algorithm: 'HS512' })],
  ['with a crit header', (good) => signed(claimsOf(good), { crit: ['x'], x: 1 })],
  ['whose payload is null', () => signed(null)],
  ['whose payload is text', () => signed('alice')],
  ['whose payload is a list', () => signed([1])],
  ['that is too long', (good) => signed({ ...claimsOf(good), filler: 'x'.repeat(8_192) })],
];

test.each(BROKEN)('5.1.6 a token %s is refused', async (_what, broken) => {
  const good = shop.tokenOf(await shop.makeUser());
  expect(said(await shop.rest('GET', '/users/me/', { token: broken(good) }))).toEqual(REFUSED);
});

test.each([
  ['missing', undefined],
  ['null', null],
  ['empty', ''],
  ['a number', 123],
  ['a list', ['alice']],
  ['an object', { $ne: null }],
  ['a name with NUL', 'alice\u0000'],
])('5.1.6 a token whose sub is %s is refused', async (_what, sub) => {
  await shop.makeUser({ username: 'alice' });
  expect(said(await shop.rest('GET', '/users/me/', { token: signed({ sub, exp: inAMinute() }) }))).toEqual(REFUSED);
});

test('5.1.6 a token of a user who never existed is refused', async () => {
  expect(said(await shop.rest('GET', '/users/me/', { token: signed({ sub: 'nobody', exp: inAMinute() }) }))).toEqual(REFUSED);
});

test('5.1.6 a token of a user who was deleted is refused', async () => {
  const token = await issuedToken();
  await shop.sql('delete from "user"');
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

test('5.1.6 a token of a session that has ended is refused', async () => {
  const token = await issuedToken();
  await shop.rest('POST', '/api/v2/auth/login', { token });
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

test('5.1.6 a token with the sid of a session of another user is refused', async () => {
  const { sid } = claimsOf(await issuedToken('alice')) as { sid: string };
  await shop.makeUser({ username: 'bob' });
  expect(said(await shop.rest('GET', '/users/me/', { token: signed({ sub: 'bob', sid, exp: inAMinute() }) }))).toEqual(REFUSED);
});

test.each(['no UUID', '00000000-0000-4000-8000-000000000000'])('5.1.6 a token with the sid %s of no session is refused', async (sid) => {
  const { username } = await shop.makeUser();
  expect(said(await shop.rest('GET', '/users/me/', { token: signed({ sub: username, sid, exp: inAMinute() }) }))).toEqual(REFUSED);
});

test('5.1.6 the reason of a refusal goes to the log, and the token does not', async () => {
  const token = signed({ sub: 'nobody', exp: inAMinute() });
  await shop.rest('GET', '/users/me/', { token });
  const events = shop.logged.map((line) => JSON.parse(line) as Record<string, unknown>).filter(({ event }) => event === 'auth.token');
  expect(events).toEqual([expect.objectContaining({ outcome: 'failure', reason: 'no such user' })]);
  expect(shop.logged.join('')).not.toContain(token.split('.')[2]);
});

test.each(['/users/me/', '/users/me/items/', '/blog', '/api/users'])('5.1.7 a disabled user is refused with 400 at %s', async (path) => {
  const user = await shop.makeUser({ disabled: true });
  expect(await shop.rest('GET', path, { as: user })).toMatchObject(INACTIVE);
});

test('5.1.7 a user who is disabled after the issue of the token is refused with 400 at the next call', async () => {
  const token = await issuedToken();
  expect(await shop.rest('GET', '/users/me/', { token })).toMatchObject({ status: 200 });
  await shop.sql('update "user" set disabled = true');
  expect(await shop.rest('GET', '/users/me/', { token })).toMatchObject(INACTIVE);
});

test('5.1.7 a disabled user whose session has ended is refused with 400, too', async () => {
  const token = await issuedToken();
  await shop.rest('POST', '/api/v2/auth/login', { token });
  await shop.sql('update "user" set disabled = true');
  expect(await shop.rest('GET', '/users/me/', { token })).toMatchObject(INACTIVE);
});

test('5.1.7 a disabled user whose token has expired is refused with 401', async () => {
  const token = shop.tokenOf(await shop.makeUser({ disabled: true }));
  shop.pass(15 * MINUTE);
  expect(said(await shop.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
});

test('5.1.8 a call without a token is answered 401 that the caller is not authenticated', async () => {
  expect(said(await shop.rest('GET', '/users/me/'))).toEqual(ANONYMOUS);
});

test.each(['', 'Bearer', 'Bearer ', 'Bearer a b', 'Basic YWxpY2U6eA==', 'Token abc', 'abc.def.ghi'])(
  '5.1.8 the header Authorization: %j holds no token',
  async (authorization) => {
    expect(said(await shop.rest('GET', '/users/me/', { headers: { Authorization: authorization } }))).toEqual(ANONYMOUS);
  },
);

describe('with a leeway', () => {
  const lenient = useShop({ JWT_LEEWAY_SECONDS: '60' });

  test('5.1.5 a token of the token endpoint is accepted for 30 minutes and the leeway, and then no more', async () => {
    const token = lenient.tokenOf(await lenient.makeUser(), 1800);
    lenient.pass(30 * MINUTE + 50_000);
    expect(await lenient.rest('GET', '/users/me/', { token })).toMatchObject({ status: 200 });
    lenient.pass(10_000);
    expect(said(await lenient.rest('GET', '/users/me/', { token }))).toEqual(REFUSED);
  });
});

function said({ status, body, headers }: Answer) {
  return { status, body, challenge: headers.get('www-authenticate') };
}

async function issuedToken(username?: string): Promise<string> {
  const user = await shop.makeUser(username === undefined ? {} : { username });
  const { body } = await shop.rest('POST', '/token', { form: { username: user.username, password: PASSWORD } });
  return String(body.access_token);
}

/** A token with any payload, signed as it should be. */
function signed(payload: unknown, header: object = {}): string {
  return jwt.sign(JSON.stringify(payload), TEST_SECRET, { header: { alg: 'HS256', typ: 'JWT', ...header } });
}

// The library refuses to do this.
function signedWithNothing(good: string): string {
  const input = good.split('.').slice(0, 2).join('.');
  return `${input}.${createHmac('sha256', '').update(input).digest('base64url')}`;
}

// The last of 43 characters stands for four bits and two that no byte needs: its neighbour decodes to the same bytes.
function nextOf(character: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet.charAt(alphabet.indexOf(character) + 1);
}

function claimsOf(token: string): jwt.JwtPayload {
  return jwt.decode(token) as jwt.JwtPayload;
}

function inAMinute(): number {
  return Math.floor(Date.now() / 1000) + 60;
}
