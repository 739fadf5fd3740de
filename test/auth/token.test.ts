import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { TokenError } from '../../src/features/auth/tokens/signing.ts';
import { readAccessToken } from '../../src/features/auth/tokens/token.ts';
import { readConfig } from '../../src/core/config.ts';
import type { Scope } from '../../src/core/scopes.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { TEST_SECRET } from '../support/databases.ts';
import {
  tryCredentials,
  claimsOf,
  forge,
  forgeText,
  INACTIVE,
  REJECTED,
  seconds,
  servedAs,
  type Values,
} from '../support/forge.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';

// Attacks on tokens and their responses are in test/attacks/tokens.*;
// here are their log events, and the other decisions.

const ISSUER = 'https://issuer.example';
const AUDIENCE = 'shopfront';
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

const shop = useShop();
const strictShop = new Shop({ JWT_ISSUER: ISSUER, JWT_AUDIENCE: AUDIENCE });

beforeAll(() => strictShop.start());
afterAll(() => strictShop.stop());

describe('an accepted token', () => {
  test.each<[string, (now: number) => Values]>([
    ['J17 issued by a clock slightly ahead', (now) => ({ iat: now + 20 })],
    ['Decisions, tokens: no iat, jti or sid', () => ({ iat: undefined })],
    ['Decisions, tokens: unknown claims', () => ({ admin: true, disabled: false, $where: '1' })],
  ])('%s: it is accepted', async (_claims, claims) => {
    const user = await shop.makeUser();
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, claims(seconds(shop)))))).toEqual(
      servedAs(user),
    );
  });
});

describe('a rejected token', () => {
  const HEADER = '{"alg":"HS256","typ":"JWT"}';
  const withClaims = (claims: (now: number) => Values) => (user: User) =>
    forge(claimsOf(shop, user, claims(seconds(shop))));
  const withHeader = (header: Values) => (user: User) => forge(claimsOf(shop, user), header);

  test.each<[string, (user: User) => string, string]>([
    [
      'J2 alg none without a signature',
      (user) => shop.tokenOf(user).replace(/^[^.]+(.*\.)[^.]+$/, 'eyJhbGciOiJub25lIn0$1'),
      'jwt signature is required',
    ],
    ['J3 another algorithm', withHeader({ alg: 'HS384' }), 'invalid algorithm'],
    ['J4 another secret', (user) => forge(claimsOf(shop, user), {}, ''), 'invalid signature'],
    ['J5 a signature that is padded', (user) => `${shop.tokenOf(user)}=`, 'invalid token'],
    ['J9 four segments', (user) => `${shop.tokenOf(user)}.e30`, 'jwt malformed'],
    ['J9 empty segments', () => '..', 'invalid token'],
    [
      'J11 a text as the payload',
      () => forgeText(HEADER, '"alice"'),
      'the payload is not an object',
    ],
    ['J11 a list as the payload', () => forgeText(HEADER, '[1]'), 'the payload is not an object'],
    [
      'J12 neither exp nor iat',
      withClaims(() => ({ exp: undefined, iat: undefined })),
      'neither exp nor iat',
    ],
    ['J13 exp now', withClaims((now) => ({ exp: now })), 'expired'],
    ['J13 exp null', withClaims(() => ({ exp: null })), 'a time is not a number'],
    [
      'J16 nbf in ten minutes',
      withClaims((now) => ({ nbf: now + 600, exp: now + 1200 })),
      'not valid yet',
    ],
    [
      'J17 issued in an hour',
      withClaims((now) => ({ iat: now + 3600, exp: now + 7200 })),
      'issued in the future',
    ],
    ['J18 another audience', withClaims(() => ({ aud: 'other' })), 'wrong audience'],
    ...Object.entries({ crit: ['x'], b64: false, zip: 'DEF' }).map(
      ([name, value]) =>
        [
          `J21 the header ${name}`,
          withHeader({ [name]: value }),
          `the header parameter ${name} is not supported`,
        ] as [string, (user: User) => string, string],
    ),
    [
      'J22 a refresh token',
      withHeader({ typ: 'refresh+jwt' }),
      'a refresh token is not an access token',
    ],
    ['J23 no sub', withClaims(() => ({ sub: undefined })), 'sub is missing or not a username'],
    ['J24 a sub without a user', withClaims(() => ({ sub: 'nobody' })), 'no such user'],
    ['J29 more than 8,192 characters', withClaims(() => ({ pad: 'p'.repeat(8_192) })), 'too long'],
    [
      'Decisions, tokens: a sid that is not a text',
      withClaims(() => ({ sid: 1 })),
      'sid is not a string',
    ],
    [
      'Decisions, tokens: a sid without a session',
      withClaims(() => ({ sid: '0b8f4b0e-6a5f-4b76-9a51-3c4b6b1f2d11' })),
      'the session has ended',
    ],
    [
      'Decisions, tokens: an invalid sid',
      withClaims(() => ({ sid: "' or 1=1 --" })),
      'the session has ended',
    ],
    [
      'Decisions, tokens: scopes that are not a list',
      withClaims(() => ({ scopes: { 0: 'products:write' } })),
      'scopes is not a list of strings',
    ],
    [
      'Decisions, tokens: scopes that are one text',
      withClaims(() => ({ scopes: 'products:write' })),
      'scopes is not a list of strings',
    ],
    [
      'Decisions, tokens: a scope that is a list',
      withClaims(() => ({ scope: ['products:write'] })),
      'scope is not a string',
    ],
    [
      'Decisions, tokens: a scope that is null',
      withClaims(() => ({ scope: null })),
      'scope is not a string',
    ],
    [
      'Decisions, tokens: a scope that is not a text, beside valid scopes',
      withClaims(() => ({ scopes: ['products:write'], scope: 1 })),
      'scope is not a string',
    ],
  ])('%s: only the log has the reason', async (_what, make, reason) => {
    expect(await tryCredentials(shop, make(await shop.makeUser()))).toEqual(REJECTED);
    expect(reasons(shop)).toEqual([reason, reason]);
  });

  test('J20 another issuer, where one is configured: the log has the reason', async () => {
    expect(
      await tryCredentials(
        strictShop,
        forge(claimsOf(strictShop, await shop.makeUser(), { aud: AUDIENCE })),
      ),
    ).toEqual(REJECTED);
    expect(reasons(strictShop)).toEqual(['wrong issuer', 'wrong issuer']);
  });

  test("Decisions, tokens: the sid of another user's session is rejected", async () => {
    const user = await shop.makeUser();
    const { session } = await sessions.open(shop.context(), await shop.makeUser(), null);
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, { sid: session.sid })))).toEqual(
      REJECTED,
    );
    expect(reasons(shop)).toEqual(['the session has ended', 'the session has ended']);
  });

  test('Decisions, one domain: a token ends with its session', async () => {
    const user = await shop.makeUser();
    const { session, key } = await sessions.open(shop.context(), user, null);
    const token = forge(claimsOf(shop, user, { sid: session.sid }));
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
    expect(
      (await shop.rest('POST', '/session/logout', { json: { session_key: key } })).status,
    ).toBe(200);
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
    expect(reasons(shop)).toEqual(['the session has ended', 'the session has ended']);
  });

  test('Decisions, tokens: a disabled user gets 400, not 401, also if the session has ended', async () => {
    const user = await shop.makeUser();
    const { session } = await sessions.open(shop.context(), user, null);
    await shop.sql(`delete from session; update "user" set disabled = true`);
    expect(await tryCredentials(shop, forge(claimsOf(shop, user, { sid: session.sid })))).toEqual(
      INACTIVE,
    );
    expect(reasons(shop)).toEqual([]);
  });
});

describe('to the millisecond', () => {
  const at = Date.UTC(2027, 0, 1);

  test.each<[string, Values, number, number]>([
    ['J13 not at exp or after', { exp: at / 1000 }, at - 1, at],
    ['J15 nor at an exp with a fraction', { exp: at / 1000 + 0.5 }, at + 499, at + 500],
    ['J12 without exp not 15 minutes after iat', { iat: at / 1000 - 900 }, at - 1, at],
  ])('%s', (_what, claims, lastGood, firstBad) => {
    const token = forge({ sub: 'alice', ...claims });
    expect(readAccessToken(readingAt(lastGood), token)).toMatchObject({ username: 'alice' });
    expect(() => readAccessToken(readingAt(firstBad), token)).toThrow(new TokenError('expired'));
  });

  test('J16 not before nbf', () => {
    const token = forge({ sub: 'alice', nbf: at / 1000, exp: at / 1000 + 60 });
    expect(() => readAccessToken(readingAt(at - 1), token)).toThrow(
      new TokenError('not valid yet'),
    );
    expect(readAccessToken(readingAt(at), token)).toMatchObject({ username: 'alice' });
  });

  test('Decisions, tokens: JWT_LEEWAY_SECONDS moves both ends', () => {
    const token = forge({ sub: 'alice', nbf: at / 1000, exp: at / 1000 + 60 });
    expect(() => readAccessToken(readingAt(at - 30_001, 30), token)).toThrow(
      new TokenError('not valid yet'),
    );
    expect(readAccessToken(readingAt(at - 30_000, 30), token)).toMatchObject({ username: 'alice' });
    expect(readAccessToken(readingAt(at + 89_999, 30), token)).toMatchObject({ username: 'alice' });
    expect(() => readAccessToken(readingAt(at + 90_000, 30), token)).toThrow(
      new TokenError('expired'),
    );
  });

  function readingAt(time: number, jwtLeewaySeconds = 0) {
    const ctx = shop.context();
    return { ...ctx, config: { ...ctx.config, jwtLeewaySeconds }, now: () => new Date(time) };
  }
});

describe('scopes', () => {
  test.each<[string, Scope[], unknown, number, unknown?]>([
    ['no scopes claim means all scopes of the user', ['products:write'], undefined, 201],
    [
      'the claim names a scope that the user holds',
      ['products:write', 'users:read'],
      ['products:write'],
      201,
    ],
    ['an unknown scope has no effect', ['products:write'], ['products:write', 'openid'], 201],
    ['the claim is empty', ['products:write'], [], 403],
    ['the claim names a pattern, which is not a scope', ['products:write'], ['products:*'], 403],
    ['the claim names another scope', ['products:write', 'users:read'], ['users:read'], 403],
    [
      'the claim names a scope that the user does not hold',
      ['users:read'],
      ['products:write'],
      403,
    ],
    [
      '`scope` in place of `scopes` names it',
      ['products:write'],
      undefined,
      201,
      'openid products:write',
    ],
    ['`scope` is empty', ['products:write'], undefined, 403, ''],
    ['`scope` names another scope', ['products:write', 'users:read'], undefined, 403, 'users:read'],
    [
      '`scope` contains the name in a longer word',
      ['products:write'],
      undefined,
      403,
      'xproducts:write',
    ],
    [
      '`scope` has another separator than a space',
      ['products:write'],
      undefined,
      403,
      'users:read,products:write',
    ],
    [
      '`scope` names a scope that the user does not hold',
      ['users:read'],
      undefined,
      403,
      'products:write',
    ],
    [
      '`scopes` and `scope` both name it',
      ['products:write'],
      ['users:read', 'products:write'],
      201,
      'products:write blog:write',
    ],
    [
      'of `scopes` and `scope`, only `scopes` names it',
      ['products:write'],
      ['products:write'],
      403,
      'users:read',
    ],
    [
      'of `scopes` and `scope`, only `scope` names it',
      ['products:write'],
      [],
      403,
      'products:write',
    ],
  ])(
    'Decisions, who may write: a scope has to be held by both user and token: %s',
    async (_what, held, scopes, status, scope) => {
      const token = forge(claimsOf(shop, await shop.makeUser({ scopes: held }), { scopes, scope }));
      const json = { name: 'Pen', barcode: shop.newBarcode(), price: 1 };
      const answer = await shop.rest('POST', '/api/v1/shop/product/', { token, json });
      expect(answer.status).toBe(status);
      expect(await shop.sql('select * from product')).toHaveLength(status === 201 ? 1 : 0);
    },
  );
});

describe('issued tokens', () => {
  test.each(['/token', '/login'])('J35 POST %s: 30 minutes, and these claims', async (path) => {
    const user = await shop.makeUser({ scopes: ['products:write'] });
    const { body } = await shop.rest('POST', path, {
      form: { username: user.username, password: PASSWORD },
    });
    const [{ sid }] = (await shop.sql('select sid from session')) as [{ sid: string }];
    const { header, payload } = jwt.verify(body.access_token, TEST_SECRET, {
      algorithms: ['HS256'],
      complete: true,
    });
    const { iat = 0, exp = 0, ...claims } = payload as jwt.JwtPayload;
    expect(header).toEqual({ alg: 'HS256', typ: 'JWT', kid: expect.any(String) });
    expect(exp - iat).toBe(1800);
    expect(claims).toEqual({
      sub: user.username,
      sid,
      scopes: ['products:write'],
      jti: expect.stringMatching(UUID),
    });
    expect(sid).toMatch(UUID);
  });

  test('Decisions, tokens: it has issuer and audience where they are configured', async () => {
    const user = await shop.makeUser();
    const token = strictShop.tokenOf(user);
    expect(jwt.decode(token)).toMatchObject({ iss: ISSUER, aud: AUDIENCE });
    expect(await tryCredentials(strictShop, token)).toEqual(servedAs(user));
  });
});

describe('the configuration', () => {
  const config = (env: Record<string, string>) => () =>
    readConfig({ DATABASE_URL: 'postgresql://127.0.0.1/shop', ...env }, () => undefined);

  test('Decisions, tokens: a secret has 32 bytes or more, counted as bytes', () => {
    expect(config({ SIGNING_SECRET: 's'.repeat(31) })).toThrow(
      'SIGNING_SECRET must have 32 bytes or more',
    );
    expect(config({ SIGNING_SECRET: 'ä'.repeat(16) })().signingSecrets).toEqual(['ä'.repeat(16)]);
  });

  test('Decisions, tokens: JWT_LEEWAY_SECONDS is 0 by default and at most 300', () => {
    expect(config({ SIGNING_SECRET: TEST_SECRET })().jwtLeewaySeconds).toBe(0);
    expect(
      config({ SIGNING_SECRET: TEST_SECRET, JWT_LEEWAY_SECONDS: '300' })().jwtLeewaySeconds,
    ).toBe(300);
    expect(config({ SIGNING_SECRET: TEST_SECRET, JWT_LEEWAY_SECONDS: '301' })).toThrow(
      'JWT_LEEWAY_SECONDS must be from 0 to 300',
    );
  });
});

/** Returns the logged reasons of the rejected tokens. */
function reasons({ logged }: Shop): unknown[] {
  const events = logged.map((line) => JSON.parse(line) as Values);
  return events
    .filter(({ event, outcome }) => event === 'auth.token' && outcome === 'failure')
    .map(({ reason }) => reason);
}
