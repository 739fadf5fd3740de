import { createHmac, generateKeyPairSync, sign as signAsymmetric } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { callerByToken } from '../../src/auth/caller.service.ts';
import * as sessions from '../../src/auth/session.service.ts';
import { TokenError } from '../../src/auth/signing.ts';
import { createAccessToken, readAccessToken } from '../../src/auth/token.ts';
import { ConfigError, readConfig } from '../../src/kit/config.ts';
import type { Scope } from '../../src/kit/scopes.ts';
import type { User } from '../../src/users/user.entity.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';

type Values = Record<string, unknown>;

const ME = '{ me { username } }';
const ISSUER = 'https://issuer.example';
const AUDIENCE = 'shopfront';
const OTHER_SECRET = 'another-secret-for-tests-of-32-bytes';

const shop = useShop();
const strictShop = new Shop({ JWT_ISSUER: ISSUER, JWT_AUDIENCE: AUDIENCE });
const otherShop = new Shop({ SIGNING_SECRET: OTHER_SECRET });

beforeAll(() => Promise.all([strictShop.start(), otherShop.start()]));
afterAll(() => Promise.all([strictShop.stop(), otherShop.stop()]));

describe('a good token', () => {
  test('J1 it is served as its user by REST, with these members and no other', async () => {
    const user = await shop.makeUser({ fullName: 'Ann Example' });
    const answer = await shop.rest('GET', '/users/me/', { token: tokenOf(user) });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ username: user.username, email: user.email, full_name: 'Ann Example', disabled: false });
  });

  test('J1 it is served as its user by GraphQL', async () => {
    const user = await shop.makeUser();
    const answer = await shop.graphql(ME, {}, { token: tokenOf(user) });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ data: { me: { username: user.username } } });
  });

  test.each([
    ['J22 typ JOSE', { typ: 'JOSE' }],
    ['J22 no typ', { typ: undefined }],
    ['J22 typ in lower case', { typ: 'jwt' }],
    ['J22 cty JWT without a token inside', { cty: 'JWT' }],
    ['J22 a kid, which nobody asks for', { kid: '../../etc/passwd' }],
  ])('%s makes no difference', async (_header, header) => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, {}, header))).toEqual(served(user));
  });

  test.each<[string, (now: number) => Values]>([
    ['J12 without exp, issued 890 seconds ago', (now) => ({ exp: undefined, iat: now - 890 })],
    ['J15 an exp with a fraction', (now) => ({ exp: now + 5.5 })],
    ['J16 an nbf that has come', (now) => ({ nbf: now })],
    ['J17 issued by a clock that is a little ahead', (now) => ({ iat: now + 20 })],
    ['Decisions, tokens: no iat, jti or sid', () => ({ iat: undefined })],
    ['Decisions, tokens: claims that nobody knows', () => ({ admin: true, disabled: false, $where: '1' })],
  ])('%s: it is served', async (_claims, claims) => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, claims(nowSeconds())))).toEqual(served(user));
  });

  test('J29 it is read up to 8,192 characters', async () => {
    const user = await shop.makeUser();
    const token = tokenOfLength(user, 8_192);
    expect(token).toHaveLength(8_192);
    expect(await ask(shop, token)).toEqual(served(user));
  });

  test.each([
    ['J19 our audience', { aud: AUDIENCE }],
    ['J19 our audience among others', { aud: ['other', AUDIENCE] }],
    ['J19 no audience', {}],
  ])('%s is served where issuer and audience are configured', async (_claims, claims) => {
    const user = await shop.makeUser();
    expect(await ask(strictShop, tokenOf(user, { iss: ISSUER, ...claims }))).toEqual(served(user));
  });

  test('J20 any issuer is served where none is configured', async () => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, { iss: 'https://elsewhere.example' }))).toEqual(served(user));
  });
});

describe('signature and algorithm', () => {
  test.each(
    ['none', 'None', 'NONE', 'nOnE'].flatMap((alg) => [
      [alg, 'no signature', '', 'jwt signature is required'],
      [alg, 'a made-up signature', 'c2lnbmF0dXJl', 'invalid algorithm'],
    ]),
  )('J2 alg %s with %s is refused', async (alg, _what, signature, reason) => {
    const user = await shop.makeUser();
    const token = `${encode({ alg, typ: 'JWT' })}.${encode(claimsOf(user))}.${signature}`;
    expect(await ask(shop, token)).toEqual(refused(reason));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test.each([
    ['HS384', 'sha384'],
    ['HS512', 'sha512'],
    ['hs256', 'sha256'],
    ['RS256', 'sha256'],
    ['ES256', 'sha256'],
  ])('J3 %s signed with our secret is refused: the algorithm is HS256, whatever the token says', async (alg, hash) => {
    const user = await shop.makeUser();
    expect(await ask(shop, sign({ alg, typ: 'JWT' }, claimsOf(user), TEST_SECRET, hash))).toEqual(refused('invalid algorithm'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J4 a token signed with the empty secret is refused', async () => {
    const user = await shop.makeUser();
    expect(await ask(shop, sign({ alg: 'HS256', typ: 'JWT' }, claimsOf(user), ''))).toEqual(refused('invalid signature'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J4 a token signed with a secret that everyone tries first is refused', async () => {
    const user = await shop.makeUser();
    const tokens = COMMON_SECRETS.map((secret) => sign({ alg: 'HS256', typ: 'JWT' }, claimsOf(user), secret));
    const answers = await Promise.all(tokens.map((token) => shop.rest('GET', '/users/me/', { token })));
    expect(COMMON_SECRETS).toHaveLength(100);
    expect(answers.map(({ status }) => status)).toEqual(tokens.map(() => 401));
    expect(reasons(shop)).toEqual(tokens.map(() => 'invalid signature'));
  });

  test.each<[string, (token: string, other: string) => string, string]>([
    ['with one bit flipped', (token) => withSignature(token, flipBit), 'invalid signature'],
    ['cut by a byte', (token) => withSignature(token, (bytes) => bytes.subarray(0, -1)), 'invalid signature'],
    ['longer by a byte', (token) => withSignature(token, (bytes) => Buffer.concat([bytes, Buffer.of(0)])), 'invalid signature'],
    ['that is gone', (token) => token.slice(0, token.lastIndexOf('.') + 1), 'jwt signature is required'],
    [
      'of another token',
      (token, other) => token.slice(0, token.lastIndexOf('.')) + other.slice(other.lastIndexOf('.')),
      'invalid signature',
    ],
    ['whose last character stands for the same bytes', nonCanonical, 'invalid signature'],
    ['padded with =', (token) => `${token}=`, 'invalid token'],
  ])('J5 a signature %s is refused', async (_what, change, reason) => {
    const user = await shop.makeUser();
    const token = change(tokenOf(user), tokenOf(user, { jti: 'another' }));
    expect(await ask(shop, token)).toEqual(refused(reason));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J5 a line break behind the signature is refused', () => {
    const token = sign({ alg: 'HS256', typ: 'JWT' }, { sub: 'alice', exp: nowSeconds() + 60 });
    expect(readAccessToken(shop.context(), token)).toMatchObject({ username: 'alice' });
    expect(() => readAccessToken(shop.context(), `${token}\n`)).toThrow(TokenError);
  });

  test('J6 a payload that was changed under an old signature is refused', async () => {
    const user = await shop.makeUser();
    const [header, , signature] = tokenOf(await shop.makeUser()).split('.');
    expect(await ask(shop, `${header}.${encode(claimsOf(user))}.${signature}`)).toEqual(refused('invalid signature'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test.each<[string, (url: string, jwk: unknown) => Values]>([
    ['jwk', (_url, jwk) => ({ jwk })],
    ['jku', (url) => ({ jku: `${url}/jwks.json`, kid: '1' })],
    ['x5u', (url) => ({ x5u: `${url}/chain.pem` })],
  ])('J7 a key that the token brings itself, by %s, is neither taken nor fetched', async (_header, header) => {
    let connections = 0;
    const listener = createServer((_req, res) => res.end('{}')).on('connection', () => connections++);
    await new Promise<void>((done) => listener.listen(0, '127.0.0.1', done));
    listener.unref();
    const url = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const user = await shop.makeUser();
    const text = `${encode({ alg: 'ES256', typ: 'JWT', ...header(url, publicKey.export({ format: 'jwk' })) })}.${encode(claimsOf(user))}`;
    const signature = signAsymmetric('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });

    expect(await ask(shop, `${text}.${signature.toString('base64url')}`)).toEqual(refused('invalid algorithm'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));

    expect(connections).toBe(0);
    await fetch(url, { headers: { Connection: 'close' } });
    expect(connections).toBe(1);
  });

  test('J7 a symmetric key that the token brings itself is not taken', async () => {
    const user = await shop.makeUser();
    const jwk = { kty: 'oct', k: Buffer.from(OTHER_SECRET).toString('base64url') };
    expect(await ask(shop, sign({ alg: 'HS256', typ: 'JWT', jwk }, claimsOf(user), OTHER_SECRET))).toEqual(refused('invalid signature'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J36 a token of another secret is refused, each way', async () => {
    const user = await shop.makeUser();
    expect(await ask(shop, otherShop.tokenOf(user))).toEqual(refused('invalid signature'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
    expect(await ask(otherShop, shop.tokenOf(user))).toEqual(refused('invalid signature'));
    expect(await ask(otherShop, otherShop.tokenOf(user))).toEqual(served(user));
  });
});

describe('form', () => {
  test.each<[string, (token: string) => string, string]>([
    ['two segments', (token) => token.slice(0, token.lastIndexOf('.')), 'jwt malformed'],
    ['four segments', (token) => `${token}.e30`, 'jwt malformed'],
    ['five segments', (token) => `${token}.e30.e30`, 'jwt malformed'],
    ['...', () => '...', 'jwt malformed'],
    ['..', () => '..', 'invalid token'],
    ['null', () => 'null', 'jwt malformed'],
    ['undefined', () => 'undefined', 'jwt malformed'],
    ['[object Object]', () => '[object', 'jwt malformed'],
    ['the general JSON serialization', (token) => jsonSerialization(token, true), 'jwt malformed'],
    ['the flattened JSON serialization', (token) => jsonSerialization(token, false), 'jwt malformed'],
  ])('J9 %s is no token', async (_what, make, reason) => {
    const user = await shop.makeUser();
    expect(await ask(shop, make(tokenOf(user)))).toEqual(refused(reason));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test.each<[string, string, unknown]>([
    ['a text', '"alice"', 'the payload is no object'],
    ['a list', '[1]', 'the payload is no object'],
    ['null', 'null', expect.any(String)],
    ['a number', '1', 'the payload is no object'],
    ['no JSON', 'sub=alice', expect.any(String)],
    ['nothing', '', 'invalid token'],
    ['an object without claims', '{}', 'neither exp nor iat'],
  ])('J11 a payload that is %s is refused', async (_what, payload, reason) => {
    const user = await shop.makeUser();
    expect(await ask(shop, signText(encode({ alg: 'HS256', typ: 'JWT' }), Buffer.from(payload).toString('base64url')))).toEqual(
      refused(reason),
    );
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test.each([
    ['crit', { crit: ['x'] }],
    ['crit with a name that we know', { crit: ['exp'], exp: 9_999_999_999 }],
    ['b64', { b64: false }],
    ['zip', { zip: 'DEF' }],
  ])('J21 the header %s is refused, for it changes how a token is to be read (RFC 7515, 4.1.11)', async (_what, header) => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, {}, header))).toEqual(refused(`the header ${Object.keys(header)[0]} is not understood`));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J22 a refresh token is no access token', async () => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, {}, { typ: 'refresh+jwt' }))).toEqual(refused('a refresh token is no access token'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J22 the refresh token that the token endpoint gives out is no access token', async () => {
    const user = await shop.makeUser();
    const form = { username: user.username, password: PASSWORD, scope: 'offline_access' };
    const { body } = await shop.rest('POST', '/token', { form });
    expect(await ask(shop, body.refresh_token)).toEqual(refused('a refresh token is no access token'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J29 8,193 characters are too many', async () => {
    const user = await shop.makeUser();
    const token = tokenOfLength(user, 8_193);
    expect(token).toHaveLength(8_193);
    expect(await ask(shop, token)).toEqual(refused('too long'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J29 a header past what HTTP here takes is answered 431 and the connection closed', async () => {
    const user = await shop.makeUser();
    const answer = await shop.raw(`GET /users/me/ HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${'a'.repeat(20_000)}\r\n\r\n`);
    expect(answer).toBe('HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n');
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });
});

describe('claims', () => {
  test.each<[string, (now: number) => Values, string]>([
    ['J12 neither exp nor iat', () => ({ exp: undefined, iat: undefined }), 'neither exp nor iat'],
    ['J12 no exp, issued 15 minutes ago', (now) => ({ exp: undefined, iat: now - 900 }), 'expired'],
    ['J13 exp now', (now) => ({ exp: now }), 'expired'],
    ['J13 exp a second ago', (now) => ({ exp: now - 1 }), 'expired'],
    ['J13 exp 0', () => ({ exp: 0 }), 'expired'],
    ['J13 exp -1', () => ({ exp: -1 }), 'expired'],
    ['J13 exp as text', (now) => ({ exp: String(now + 60) }), 'a time is no number'],
    ['J13 exp null', () => ({ exp: null }), 'a time is no number'],
    ['J16 nbf in ten minutes', (now) => ({ nbf: now + 600 }), 'not valid yet'],
    ['J16 nbf no number', () => ({ nbf: 'x' }), 'a time is no number'],
    ['J17 issued in an hour', (now) => ({ iat: now + 3600, exp: now + 7200 }), 'issued in the future'],
    ['J18 another audience', () => ({ aud: 'other' }), 'for another audience'],
    ['J18 other audiences', () => ({ aud: ['other'] }), 'for another audience'],
    ['J18 an audience of nobody', () => ({ aud: [] }), 'for another audience'],
    ['J18 the audience of another deployment', () => ({ aud: AUDIENCE }), 'for another audience'],
    ['Decisions, tokens: a sid that is no text', () => ({ sid: 1 }), 'sid is no text'],
    ['Decisions, tokens: a sid that no session has', () => ({ sid: '0b8f4b0e-6a5f-4b76-9a51-3c4b6b1f2d11' }), 'the session has ended'],
    ['Decisions, tokens: a sid that no session can have', () => ({ sid: "' or 1=1 --" }), 'the session has ended'],
    ['Decisions, tokens: scopes that are no list', () => ({ scopes: { 0: 'products:write' } }), 'scopes is no list of text'],
  ])('%s is refused', async (_what, claims, reason) => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, claims(nowSeconds())))).toEqual(refused(reason));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test.each<[string, Values, string]>([
    ['J18 another audience', { iss: ISSUER, aud: 'other' }, 'for another audience'],
    ['J18 other audiences', { iss: ISSUER, aud: ['other', 'shopfront2'] }, 'for another audience'],
    ['J18 our audience in upper case', { iss: ISSUER, aud: AUDIENCE.toUpperCase() }, 'for another audience'],
    ['J20 another issuer', { iss: 'https://elsewhere.example', aud: AUDIENCE }, 'of another issuer'],
    ['J20 a list of issuers', { iss: [ISSUER], aud: AUDIENCE }, 'of another issuer'],
    ['J20 no issuer', { aud: AUDIENCE }, 'of another issuer'],
  ])('%s is refused where issuer and audience are configured', async (_what, claims, reason) => {
    const user = await shop.makeUser();
    expect(await ask(strictShop, tokenOf(user, claims))).toEqual(refused(reason));
    expect(await ask(strictShop, tokenOf(user, { iss: ISSUER }))).toEqual(served(user));
  });

  test.each<[string, unknown]>([
    ['missing', undefined],
    ['null', null],
    ['empty', ''],
    ['a number', 123],
    ['a list', ['alice']],
    ['an operator', { $ne: null }],
    ['a name with a NUL', 'alice\u0000'],
    ['a name with half of a surrogate pair', 'alice\ud800'],
  ])('J23 a sub that is %s is refused, and the database is not asked', async (_what, sub) => {
    const user = await shop.makeUser({ username: 'alice' });
    const token = tokenOf(user, { sub });
    expect(await ask(shop, token)).toEqual(refused('sub is missing or no username'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
    await expect(callerByToken(withoutDatabase(), token)).rejects.toMatchObject({ code: 'INVALID_TOKEN' });
    await expect(callerByToken(withoutDatabase(), tokenOf(user))).rejects.toThrow('the database was asked');
  });

  test('J23 a sub of 10 KB is refused', async () => {
    const user = await shop.makeUser();
    expect(await ask(shop, tokenOf(user, { sub: 'a'.repeat(10_240) }))).toEqual(refused('too long'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test.each([
    ['never was', 'nobody'],
    ['is written otherwise', 'ALICE'],
    ['has another letter that looks the same', '\u0430lice'],
    ['has a space behind it', 'alice '],
  ])('J24 a sub of a user who %s is refused', async (_what, sub) => {
    const user = await shop.makeUser({ username: 'alice' });
    expect(await ask(shop, tokenOf(user, { sub }))).toEqual(refused('no such user'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('J24 a sub of a user who was deleted is refused', async () => {
    const user = await shop.makeUser();
    const gone = await shop.makeUser();
    const token = tokenOf(gone);
    await shop.sql(`delete from "user" where pk = ${gone.pk}`);
    expect(await ask(shop, token)).toEqual(refused('no such user'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test("Decisions, tokens: the sid of somebody else's session is refused", async () => {
    const user = await shop.makeUser();
    const { session } = await sessions.open(shop.context(), await shop.makeUser(), null);
    expect(await ask(shop, tokenOf(user, { sid: session.sid }))).toEqual(refused('the session has ended'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });

  test('Decisions, one domain: a token dies with its session', async () => {
    const user = await shop.makeUser();
    const { session, key } = await sessions.open(shop.context(), user, null);
    const token = tokenOf(user, { sid: session.sid });
    expect(await ask(shop, token)).toEqual(served(user));
    expect((await shop.rest('POST', '/session/logout', { json: { session_key: key } })).status).toBe(200);
    expect(await ask(shop, token)).toEqual(refused('the session has ended'));
    expect(await ask(shop, tokenOf(user))).toEqual(served(user));
  });
});

describe('to the millisecond', () => {
  const at = Date.UTC(2027, 0, 1);

  test.each<[string, Values, number, number]>([
    ['J13 not at exp or after', { exp: at / 1000 }, at - 1, at],
    ['J15 nor at an exp with a fraction', { exp: at / 1000 + 0.5 }, at + 499, at + 500],
    ['J12 without exp not 15 minutes after iat', { iat: at / 1000 - 900 }, at - 1, at],
  ])('%s', (_what, claims, lastGood, firstBad) => {
    const token = sign({ alg: 'HS256', typ: 'JWT' }, { sub: 'alice', ...claims });
    expect(readAccessToken(readingAt(lastGood), token)).toMatchObject({ username: 'alice' });
    expect(() => readAccessToken(readingAt(firstBad), token)).toThrow(new TokenError('expired'));
  });

  test('J16 not before nbf', () => {
    const token = sign({ alg: 'HS256', typ: 'JWT' }, { sub: 'alice', nbf: at / 1000, exp: at / 1000 + 60 });
    expect(() => readAccessToken(readingAt(at - 1), token)).toThrow(new TokenError('not valid yet'));
    expect(readAccessToken(readingAt(at), token)).toMatchObject({ username: 'alice' });
  });

  test('Decisions, tokens: JWT_LEEWAY_SECONDS moves both ends', () => {
    const token = sign({ alg: 'HS256', typ: 'JWT' }, { sub: 'alice', nbf: at / 1000, exp: at / 1000 + 60 });
    expect(() => readAccessToken(readingAt(at - 30_001, 30), token)).toThrow(new TokenError('not valid yet'));
    expect(readAccessToken(readingAt(at - 30_000, 30), token)).toMatchObject({ username: 'alice' });
    expect(readAccessToken(readingAt(at + 89_999, 30), token)).toMatchObject({ username: 'alice' });
    expect(() => readAccessToken(readingAt(at + 90_000, 30), token)).toThrow(new TokenError('expired'));
  });

  function readingAt(time: number, jwtLeewaySeconds = 0) {
    const ctx = shop.context();
    return { ...ctx, config: { ...ctx.config, jwtLeewaySeconds }, now: () => new Date(time) };
  }
});

describe('a disabled user', () => {
  const INACTIVE = {
    rest: [400, null, { detail: 'Inactive user' }],
    graphql: [400, null, { errors: [{ message: 'Inactive user', extensions: { code: 'INACTIVE_USER' } }] }],
    reasons: [],
  };

  test('J25 gets 400 with a good token, by REST and by GraphQL', async () => {
    const user = await shop.makeUser({ disabled: true });
    expect(await ask(shop, tokenOf(user))).toEqual(INACTIVE);
  });

  test('J25 gets 401 with a bad one', async () => {
    const user = await shop.makeUser({ disabled: true });
    const answer = await shop.rest('GET', '/users/me/', { token: tokenOf(user, { exp: 0 }) });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual({ detail: 'Could not validate credentials' });
  });

  test('J26 gets 400 at the very next call after being disabled, and is served once enabled', async () => {
    const user = await shop.makeUser();
    const token = tokenOf(user);
    expect(await ask(shop, token)).toEqual(served(user));
    await shop.sql(`update "user" set disabled = true where pk = ${user.pk}`);
    expect(await ask(shop, token)).toEqual(INACTIVE);
    await shop.sql(`update "user" set disabled = false where pk = ${user.pk}`);
    expect(await ask(shop, token)).toEqual(served(user));
  });

  test('Decisions, tokens: gets 400, not 401, where the session has ended, too', async () => {
    const user = await shop.makeUser();
    const { session } = await sessions.open(shop.context(), user, null);
    await shop.sql(`delete from session; update "user" set disabled = true`);
    expect(await ask(shop, tokenOf(user, { sid: session.sid }))).toEqual(INACTIVE);
  });
});

describe('where the token stands', () => {
  test.each<[string, (token: string) => string]>([
    ['Bearer alone', () => 'Bearer'],
    ['Bearer and spaces', () => 'Bearer  '],
    ['Bearer and two words', (token) => `Bearer ${token} b`],
    ['Bearer with the token right behind it', (token) => `Bearer${token}`],
    ['Basic', (token) => `Basic ${token}`],
    ['the token alone', (token) => token],
  ])('J31 %s are no credentials', async (_what, header) => {
    const user = await shop.makeUser();
    const headers = { Authorization: header(tokenOf(user)) };
    expect(seen(await shop.rest('GET', '/users/me/', { headers }))).toEqual([401, 'Bearer', { detail: 'Not authenticated' }]);
    const answer = await shop.graphql(ME, {}, { headers });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ data: { me: null } });
  });

  test.each(['bearer', 'BEARER', 'Bearer '])(
    'RFC 9110, 11.1: the scheme is read in any case, and with more than one space behind it: %j',
    async (scheme) => {
      const user = await shop.makeUser();
      const answer = await shop.rest('GET', '/users/me/', { headers: { Authorization: `${scheme} ${tokenOf(user)}` } });
      expect(answer.status).toBe(200);
      expect(answer.body).toMatchObject({ username: user.username });
    },
  );

  test.each(['access_token', 'token', 'Authorization'])('J32 a token in the query as %s is not looked at', async (name) => {
    const user = await shop.makeUser();
    const answer = await shop.rest('GET', `/users/me/?${name}=${tokenOf(user)}`);
    expect(seen(answer)).toEqual([401, 'Bearer', { detail: 'Not authenticated' }]);
  });

  test('J32 a token in a cookie is not looked at', async () => {
    const user = await shop.makeUser();
    const headers = { Cookie: `access_token=${tokenOf(user)}; Authorization=Bearer ${tokenOf(user)}` };
    const answer = await shop.rest('GET', '/users/me/', { headers });
    expect(seen(answer)).toEqual([401, 'Bearer', { detail: 'Not authenticated' }]);
  });

  test('J32 a token in a body is not looked at', async () => {
    const user = await shop.makeUser({ scopes: ['products:write'] });
    const json = { name: 'Pen', barcode: shop.newBarcode(), price: 1, access_token: tokenOf(user) };
    const answer = await shop.rest('POST', '/api/v1/shop/product/', { json });
    expect(answer.status).toBe(401);
    expect(answer.body).toEqual({ detail: 'Not authenticated' });
    expect(await shop.sql('select * from product')).toEqual([]);
  });

  test.each<[string, string]>([
    ['REST', 'GET /users/me/ HTTP/1.1'],
    ['GraphQL', `GET /graphql?query=${encodeURIComponent(ME)} HTTP/1.1\r\napollo-require-preflight: true`],
  ])('J33 two Authorization headers are refused by %s, whichever is good', async (_door, head) => {
    const good = `Bearer ${tokenOf(await shop.makeUser())}`;
    const send = (...values: string[]) =>
      shop.raw(`${head}\r\nHost: shop\r\nConnection: close\r\n${values.map((value) => `Authorization: ${value}\r\n`).join('')}\r\n`);
    expect(await send(good)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    for (const two of [await send(good, 'Bearer x'), await send('Bearer x', good), await send(good, good)]) {
      expect(two).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(bodyOf(two)).toBe('{"detail":"There is more than one Authorization header"}');
    }
  });
});

describe('scopes', () => {
  test.each<[string, Scope[], unknown, number]>([
    ['no scopes claim means all that the user holds', ['products:write'], undefined, 201],
    ['the claim names what the user holds', ['products:write', 'users:read'], ['products:write'], 201],
    ['a name that is no scope of ours adds nothing and takes nothing', ['products:write'], ['products:write', 'openid'], 201],
    ['the claim is empty', ['products:write'], [], 403],
    ['the claim names something else', ['products:write', 'users:read'], ['users:read'], 403],
    ['the claim names what the user does not hold', ['users:read'], ['products:write'], 403],
  ])('Decisions, who may write: what counts is what both user and token hold: %s', async (_what, held, scopes, status) => {
    const token = tokenOf(await shop.makeUser({ scopes: held }), { scopes });
    const json = { name: 'Pen', barcode: shop.newBarcode(), price: 1 };
    const answer = await shop.rest('POST', '/api/v1/shop/product/', { token, json });
    expect(answer.status).toBe(status);
    expect(await shop.sql('select * from product')).toHaveLength(status === 201 ? 1 : 0);
  });
});

describe('issued tokens', () => {
  test.each(['/token', '/login'])('J35 POST %s: 30 minutes, and these claims', async (path) => {
    const user = await shop.makeUser({ scopes: ['products:write'] });
    const { body } = await shop.rest('POST', path, { form: { username: user.username, password: PASSWORD } });
    const [{ sid }] = (await shop.sql('select sid from session')) as [{ sid: string }];
    const { header, payload } = jwt.verify(body.access_token, TEST_SECRET, { algorithms: ['HS256'], complete: true });
    const { iat = 0, exp = 0, ...claims } = payload as jwt.JwtPayload;
    expect(header).toEqual({ alg: 'HS256', typ: 'JWT', kid: expect.any(String) });
    expect(exp - iat).toBe(1800);
    expect(claims).toEqual({ sub: user.username, sid, scopes: ['products:write'], jti: expect.any(String) });
  });

  test('J35 the login of GraphQL: 30 minutes', async () => {
    const { username } = await shop.makeUser();
    const login =
      'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { accessToken expiresIn } }';
    const { body } = await shop.graphql(login, { username, password: PASSWORD });
    const { iat = 0, exp = 0 } = jwt.decode(body.data.login.accessToken) as jwt.JwtPayload;
    expect(exp - iat).toBe(1800);
    expect(body.data.login.expiresIn).toBe(1800);
  });

  test.each<[string, number | undefined, number]>([
    ['15 minutes where the issuer names none', undefined, 900],
    ['as long as the issuer says', 60, 60],
  ])('J35 the issuing function: %s', (_what, lifetime, seconds) => {
    const { iat = 0, exp = 0 } = jwt.decode(createAccessToken(shop.context(), { username: 'alice' }, lifetime)) as jwt.JwtPayload;
    expect(exp - iat).toBe(seconds);
  });

  test('Decisions, tokens: issuer and audience stand in it where they are configured', async () => {
    const user = await shop.makeUser();
    const token = strictShop.tokenOf(user);
    expect(jwt.decode(token)).toMatchObject({ iss: ISSUER, aud: AUDIENCE });
    expect(await ask(strictShop, token)).toEqual(served(user));
  });

  test('Decisions, tokens: each has a jti of its own', async () => {
    const user = await shop.makeUser();
    const ids = Array.from({ length: 100 }, () => (jwt.decode(shop.tokenOf(user)) as jwt.JwtPayload).jti);
    expect(new Set(ids).size).toBe(100);
  });
});

describe('the secret', () => {
  const config = (env: Record<string, string>) => () =>
    readConfig({ DATABASE_URL: 'postgresql://127.0.0.1/shop', ...env }, () => undefined);

  test.each([
    ['shorter than 32 bytes', 'x'.repeat(31)],
    ['known to everyone who has read the tutorial of FastAPI', '09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7'],
  ])('J34 one that is %s is refused by name, and not printed', (_what, secret) => {
    expect(config({ SIGNING_SECRET: secret })).toThrow(ConfigError);
    expect(config({ SIGNING_SECRET: secret })).toThrow(/^(?=[^]*SIGNING_SECRET)(?![^]*(xxx|09d25e))/);
  });

  test('Decisions, tokens: 32 bytes are enough, counted as bytes', () => {
    expect(config({ SIGNING_SECRET: 'ä'.repeat(16) })().signingSecrets).toEqual(['ä'.repeat(16)]);
  });

  test('J34 there is no default with a database of its own', () => {
    expect(config({})).toThrow(/SIGNING_SECRET/);
  });

  test('Decisions, tokens: JWT_LEEWAY_SECONDS is 0 by default and at most 300', () => {
    expect(config({ SIGNING_SECRET: TEST_SECRET })().jwtLeewaySeconds).toBe(0);
    expect(config({ SIGNING_SECRET: TEST_SECRET, JWT_LEEWAY_SECONDS: '300' })().jwtLeewaySeconds).toBe(300);
    expect(config({ SIGNING_SECRET: TEST_SECRET, JWT_LEEWAY_SECONDS: '301' })).toThrow(/JWT_LEEWAY_SECONDS/);
  });
});

/** What both doors answer to the bearer of this token, and why the log says that it was refused. */
async function ask(at: Shop, token: string) {
  at.logged.length = 0;
  const rest = seen(await at.rest('GET', '/users/me/', { token }));
  const graphql = seen(await at.graphql(ME, {}, { token }));
  return { rest, graphql, reasons: reasons(at) };
}

/** Both doors serve the bearer as this user. */
function served({ username, email, fullName }: User) {
  return {
    rest: [200, null, { username, email, full_name: fullName, disabled: false }],
    graphql: [200, null, { data: { me: { username } } }],
    reasons: [],
  };
}

/** Both doors refuse in the same words, whatever is wrong; the log says what. */
function refused(reason: unknown) {
  const challenge = 'Bearer error="invalid_token"';
  const message = 'Could not validate credentials';
  return {
    rest: [401, challenge, { detail: message }],
    graphql: [401, challenge, { errors: [{ message, extensions: { code: 'UNAUTHENTICATED' } }] }],
    reasons: [reason, reason],
  };
}

function seen({ status, headers, body }: Answer): unknown[] {
  return [status, headers.get('WWW-Authenticate'), body];
}

/** Why tokens were refused, as the log says. */
function reasons({ logged }: Shop): unknown[] {
  const events = logged.map((line) => JSON.parse(line) as Values);
  return events.filter(({ event, outcome }) => event === 'auth.token' && outcome === 'failure').map(({ reason }) => reason);
}

/** A context whose database may not be asked. */
function withoutDatabase() {
  const get = () => {
    throw new Error('the database was asked');
  };
  return Object.defineProperties(shop.context(), { em: { get }, statements: { get } });
}

function nowSeconds(): number {
  return Math.floor(shop.now().getTime() / 1000);
}

function claimsOf({ username }: User): Values {
  return { sub: username, iat: nowSeconds(), exp: nowSeconds() + 60 };
}

/** A token as another issuer that shares the secret might make it. */
function tokenOf(user: User, claims: Values = {}, header: Values = {}): string {
  return sign({ alg: 'HS256', typ: 'JWT', ...header }, { ...claimsOf(user), ...claims });
}

function tokenOfLength(user: User, length: number): string {
  for (const kid of ['', 'k', 'kk', 'kkk']) {
    const spare = Math.floor(((length - tokenOf(user, { pad: '' }, { kid }).length) * 3) / 4);
    for (const size of [spare - 1, spare, spare + 1]) {
      const token = tokenOf(user, { pad: 'p'.repeat(size) }, { kid });
      if (token.length === length) return token;
    }
  }
  throw new Error(`no token has ${length} characters`);
}

function sign(header: Values, payload: unknown, secret = TEST_SECRET, hash = 'sha256'): string {
  return signText(encode(header), encode(payload), secret, hash);
}

function signText(header: string, payload: string, secret = TEST_SECRET, hash = 'sha256'): string {
  return `${header}.${payload}.${createHmac(hash, secret).update(`${header}.${payload}`).digest('base64url')}`;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function withSignature(token: string, change: (bytes: Buffer) => Buffer): string {
  const at = token.lastIndexOf('.') + 1;
  return token.slice(0, at) + change(Buffer.from(token.slice(at), 'base64url')).toString('base64url');
}

function flipBit(bytes: Buffer): Buffer {
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return bytes;
}

/** The same signature in other characters: the last one of 43 carries two bits that a decoder throws away. */
function nonCanonical(token: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return token.slice(0, -1) + alphabet[alphabet.indexOf(token.slice(-1)) + 1];
}

function jsonSerialization(token: string, general: boolean): string {
  const [header, payload, signature] = token.split('.');
  return JSON.stringify(general ? { payload, signatures: [{ protected: header, signature }] } : { payload, protected: header, signature });
}

function bodyOf(answer: string): string {
  return answer.slice(answer.indexOf('\r\n\r\n') + 4);
}

const COMMON_SECRETS = `
  secret Secret SECRET password Password changeme change-me change_me changeit default admin root test testing dev development
  production jwt JWT jwtsecret jwt-secret jwt_secret JWT_SECRET jwtSecret your-256-bit-secret your-384-bit-secret
  your-512-bit-secret your_jwt_secret your-secret-key your_secret_key yoursecretkey secretkey secret-key secret_key secretKey
  SECRET_KEY mysecret my-secret my_secret mysecretkey my-secret-key my_secret_key supersecret super-secret super_secret
  supersecretkey super-secret-key topsecret top-secret s3cr3t s3cret p4ssw0rd passw0rd P@ssw0rd pass pass123 123 1234 12345 123456
  1234567 12345678 123456789 1234567890 qwerty abc abc123 letmein welcome monkey dragon master shhhh shhhhh shhhhhhared-secret
  key privatekey private-key private_key apikey api-key api_key token access-token signing-secret SIGNING_SECRET signingsecret
  hmac HS256 hello world foo bar example demo shop shopfront null none true
`
  .trim()
  .split(/\s+/);
