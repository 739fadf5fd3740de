import { createSecretKey, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from '../support/jest.ts';
import { readConfig, type Config } from '../../src/core/config.ts';
import {
  createAccessToken,
  createRefreshToken,
  readAccessToken,
  readRefreshToken,
  readSignedBy,
  TokenError,
} from '../../src/features/auth/tokens/token.ts';
import type { Context } from '../../src/request/context.ts';
import { TEST_SECRET } from '../support/databases.ts';
import { base64url, claimsOf, forge, forgeText, signed, type Values } from '../support/forge.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';
import { wycheproof } from './wycheproof.ts';

// What the verifier accepts. test/ways-in.test.ts has what needs a user, a session or a request.

const AT = Date.UTC(2027, 0, 1);
const NOW = AT / 1000;
const OTHER_SECRET = 'another-secret-for-tests-of-32-bytes';
const ISSUER = 'https://issuer.example';
const AUDIENCE = 'shopfront';
const MAX_TOKEN_LENGTH = 8_192;

const CLAIMS = { sub: 'alice', iat: NOW, exp: NOW + 60 };
const VALID = forge(CLAIMS);
const [HEAD = '', PAYLOAD = '', SIGNATURE = ''] = VALID.split('.');
const ed = generateKeyPairSync('ed25519');

const withClaims = (claims: Values): string => forge({ ...CLAIMS, ...claims });
const withHeader = (header: Values): string => forge(CLAIMS, header);
const withSignature = (signature: string): string => `${HEAD}.${PAYLOAD}.${signature}`;
const withRawHeader = (header: string): string => forgeText(header, JSON.stringify(CLAIMS));
const withPayload = (payload: string | Buffer): string =>
  forgeText('{"alg":"HS256","typ":"JWT"}', payload);
const eachClaim = (name: string, values: readonly unknown[]): string[] =>
  values.map((value) => withClaims({ [name]: value }));

const WITH_AUDIENCE = { jwtAudience: AUDIENCE };
const WITH_ISSUER = { jwtIssuer: ISSUER };
const MALFORMED =
  /^(invalid token|jwt malformed|jwt must be provided|jwt signature is required|invalid signature|not canonical base64url)$/;

// [rule, logged reason, tokens, configuration]
const REJECTED: [string, string | RegExp, string[], Partial<Config>?][] = [
  [
    'J2 no algorithm',
    /^(invalid algorithm|invalid signature|jwt signature is required|invalid token)$/,
    ['none', 'None', 'NONE', ' none', 'none\0'].flatMap((alg) => {
      const header = base64url(JSON.stringify({ alg, typ: 'JWT' }));
      return [
        `${header}.${PAYLOAD}.`,
        `${header}.${PAYLOAD}.${SIGNATURE}`,
        signed(header, PAYLOAD),
      ];
    }),
  ],
  [
    'J3 an alg that is not HS256',
    'invalid algorithm',
    [undefined, null, '', 256, ['HS256'], 'HS384', 'HS512', 'hs256', 'RS256', 'ES256'].map((alg) =>
      withHeader({ alg }),
    ),
  ],
  [
    'J3 HS256, but signed by another hash',
    'invalid signature',
    ['sha1', 'sha512'].map((hash) =>
      forgeText('{"alg":"HS256"}', JSON.stringify(CLAIMS), TEST_SECRET, hash),
    ),
  ],
  [
    'J4 another secret',
    'invalid signature',
    ['', 'secret', 'changeme', TEST_SECRET.slice(0, -1), `${TEST_SECRET}\n`, OTHER_SECRET].map(
      (secret) => forge(CLAIMS, {}, secret),
    ),
  ],
  [
    'J5 another signature',
    MALFORMED,
    [
      withSignature(''),
      withSignature(withClaims({ x: 1 }).split('.')[2] ?? ''),
      withSignature(Buffer.alloc(32).toString('base64url')),
      withSignature(Buffer.from(SIGNATURE, 'base64url').toString('hex')),
      VALID + SIGNATURE,
      `${VALID}=`,
      `${VALID}\u00e9`,
      ...['\n', '\t', ' ', '\0', '\ufeff'].flatMap((space) => [VALID + space, space + VALID]),
    ],
  ],
  [
    'J6 content changed under an old signature',
    'invalid signature',
    [
      `${HEAD}.${base64url(JSON.stringify({ ...CLAIMS, sub: 'bob' }))}.${SIGNATURE}`,
      `${base64url('{"alg":"HS256"}')}.${PAYLOAD}.${SIGNATURE}`,
    ],
  ],
  [
    'J7 a key, or the URL of a key, in the token that it signed',
    /^invalid (algorithm|signature)$/,
    [
      { jwk: ed.publicKey.export({ format: 'jwk' }) },
      { jku: 'http://127.0.0.1:1/jwks.json', kid: '1' },
      { x5u: 'http://127.0.0.1:1/chain.pem' },
      { kid: '/dev/null' },
      { kid: "x' union select ''; --" },
    ].flatMap((header) => {
      const text = `${base64url(JSON.stringify({ alg: 'EdDSA', ...header }))}.${PAYLOAD}`;
      const signature = signBytes(null, Buffer.from(text), ed.privateKey).toString('base64url');
      return [
        `${text}.${signature}`,
        forge(CLAIMS, header, OTHER_SECRET),
        forge(CLAIMS, header, ''),
      ];
    }),
  ],
  [
    'J9 another serialization',
    MALFORMED,
    [
      `${HEAD}.${PAYLOAD}`,
      `${VALID}.e30`,
      `${VALID}.e30.e30`,
      `${VALID},${VALID}`,
      JSON.stringify({ payload: PAYLOAD, protected: HEAD, signature: SIGNATURE }),
      signed(`${HEAD}=`, PAYLOAD),
      signed(HEAD, `${PAYLOAD.slice(0, 4)}!${PAYLOAD.slice(4)}`),
    ].concat(['', '.', '..', '...', 'null', 'undefined', '{}']),
  ],
  [
    'J11 a payload that is not an object of claims',
    /^(the payload .*|expired|invalid token|jwt malformed)$/,
    [
      '"alice"',
      '[1]',
      '[{"sub":"alice","exp":9999999999}]',
      'null',
      '1',
      '',
      '{}',
      '{"sub":"alice"}{}',
      '{"__proto__":{"sub":"alice","exp":9999999999}}',
      '['.repeat(2_000) + ']'.repeat(2_000),
      Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
    ].map(withPayload),
  ],
  [
    'J11 a header that is not an object with alg',
    /^(invalid token|invalid algorithm|jwt malformed|the payload cannot be read)$/,
    ['null', '1', '[]', '{}', '', '{"alg":"HS256"', '{"__proto__":{"alg":"HS256"}}'].map(
      withRawHeader,
    ),
  ],
  [
    'J12 neither exp nor a valid iat',
    /^(expired|issued in the future)$/,
    [undefined, NOW - 900, null, String(NOW)].map((iat) => withClaims({ exp: undefined, iat })),
  ],
  [
    'J13 an exp that has come or is not a time',
    /^(expired|jwt expired|invalid exp value)$/,
    eachClaim('exp', [NOW, NOW - 1, 0, -1, '9999999999', null, { $gt: 0 }, 8.64e12 + 1]),
  ],
  [
    'J13 an infinite time',
    /^(expired|invalid (exp|nbf) value|jwt not active|issued in the future)$/,
    ['exp', 'nbf', 'iat'].map((name) =>
      withPayload(`{"sub":"alice","exp":9999999999,"${name}":1e400}`),
    ),
  ],
  [
    'J16 an nbf in the future, or not a number',
    /^(jwt not active|invalid nbf value)$/,
    eachClaim('nbf', [NOW + 600, NOW + 5.5, 'x', null]),
  ],
  [
    'J17 an iat in the future, or not a number',
    'issued in the future',
    eachClaim('iat', [NOW + 3_600, NOW + 61, NOW * 1_000, null]),
  ],
  [
    'J18 an aud where none is configured',
    'wrong audience',
    eachClaim('aud', [AUDIENCE, [AUDIENCE], [], '', null]),
  ],
  [
    'J18 another aud than the configured one',
    'wrong audience',
    eachClaim('aud', ['other', ['other'], [], null, `${AUDIENCE} `, [[AUDIENCE]]]),
    WITH_AUDIENCE,
  ],
  [
    'J20 another iss than the configured one',
    `jwt issuer invalid. expected: ${ISSUER}`,
    eachClaim('iss', ['https://other.example', undefined, [ISSUER], `${ISSUER}/`]),
    WITH_ISSUER,
  ],
  [
    'J21 critical header parameters (RFC 7515, 4.1.11)',
    /^the header parameter (crit|b64|zip) is not supported$/,
    [{ crit: ['x'], x: 1 }, { crit: [] }, { crit: null }, { b64: false }, { zip: 'DEF' }].map(
      withHeader,
    ),
  ],
  [
    'J22 a refresh token',
    'a refresh token is not an access token',
    [withHeader({ typ: 'refresh+jwt' })],
  ],
  [
    'J23 a sub that is not a username',
    'invalid claim sub',
    eachClaim('sub', [undefined, null, '', 123, ['alice'], { $ne: null }, 'alice\0', '\ud800']),
  ],
  ['J29 more than 8,192 characters', 'too long', [VALID.padEnd(MAX_TOKEN_LENGTH + 1, 'a')]],
  ['Decisions, tokens: a sid', 'invalid claim sid', eachClaim('sid', [1, null])],
  [
    'Decisions, tokens: scopes',
    /^invalid claim scopes(\.0)?$/,
    eachClaim('scopes', [{ 0: 'products:write' }, 'products:write', [1], null]),
  ],
  [
    'Decisions, tokens: a scope',
    'invalid claim scope',
    eachClaim('scope', [['products:write'], null]),
  ],
];

test.each(REJECTED)('%s is rejected, also the second time', (_rule, reason, tokens, config) => {
  const ctx = contextAt(AT, config);
  for (const token of [...tokens, ...tokens])
    expect([token, reasonOf(ctx, token)]).toEqual([
      token,
      typeof reason === 'string' ? reason : expect.stringMatching(reason),
    ]);
});

test.each<[string, string[], Partial<Config>?]>([
  ['J1 a valid token', [VALID]],
  ['J15 an exp with a fraction', [withClaims({ exp: NOW + 0.5 })]],
  ['J16 an nbf that has come', [withClaims({ nbf: NOW })]],
  ['J17 an iat of a clock slightly ahead', [withClaims({ iat: NOW + 60 })]],
  [
    'J19 our aud, alone or among others',
    eachClaim('aud', [AUDIENCE, ['x', AUDIENCE]]),
    WITH_AUDIENCE,
  ],
  ['J19 no aud', [VALID], WITH_AUDIENCE],
  ['J20 any iss where none is configured', [withClaims({ iss: 'https://other.example' })]],
  ['J20 our iss', [withClaims({ iss: ISSUER })], WITH_ISSUER],
  ['J21 header parameters as claims', [withClaims({ crit: ['x'], b64: false, zip: 'DEF' })]],
  ['J22 any typ', [undefined, 'JOSE', 'jwt', 'at+jwt', 1, null].map((typ) => withHeader({ typ }))],
  ['J22 cty and unknown headers', [withHeader({ cty: 'JWT', foo: 'bar', enc: 'A128GCM' })]],
  ['J29 almost 8,192 characters', [withClaims({ pad: 'p'.repeat(6_000) })]],
  ['Decisions, tokens: no iat, unknown claims', [withClaims({ iat: undefined, admin: true })]],
])('%s is accepted', (_what, tokens, config) => {
  for (const token of tokens) expect(reasonOf(contextAt(AT, config), token)).toBe('');
});

test('J5 a token with any character changed, added or cut is rejected', () => {
  const ctx = contextAt();
  fc.assert(
    fc.property(
      fc.nat({ max: VALID.length - 1 }),
      fc.nat({ max: 1 }),
      fc.oneof(fc.string({ maxLength: 2 }), fc.constantFrom('', '.', '=', ' ', 'A', '-')),
      (at, cut, text) => {
        const token = VALID.slice(0, at) + text + VALID.slice(at + cut);
        return token === VALID || reasonOf(ctx, token) !== '';
      },
    ),
    { numRuns: 2_000 },
  );
  // The last character has unused bits, which decoders ignore.
  for (const last of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_')
    if (!VALID.endsWith(last)) expect(reasonOf(ctx, VALID.slice(0, -1) + last)).not.toBe('');
});

test.each<[string, Values, number]>([
  ['J13 exp', { exp: NOW + 60 }, 60_000],
  ['J15 an exp with a fraction', { exp: NOW + 60.5 }, 60_500],
  ['J12 15 minutes after iat, without exp', { exp: undefined }, 900_000],
  ['J13 exp, with a session', { exp: NOW + 86_400, sid: 'x' }, 86_400_000],
])('%s ends a token, to the millisecond, although it was accepted before', (_what, claims, end) => {
  const token = withClaims(claims);
  expect(reasonOf(contextAt(AT + end - 1), token)).toBe('');
  expect(reasonOf(contextAt(AT + end), token)).toMatch(/^(jwt )?expired$/);
  expect(readAccessToken(contextAt(), token).until).toEqual(new Date(AT + end));
});

test('J16 nbf begins it, to the millisecond, and JWT_LEEWAY_SECONDS moves both ends', () => {
  const token = withClaims({ iat: undefined, nbf: NOW });
  const reasonAt = (ms: number, jwtLeewaySeconds = 0): string =>
    reasonOf(contextAt(AT + ms, { jwtLeewaySeconds }), token);
  expect([reasonAt(-1), reasonAt(0)]).toEqual(['jwt not active', '']);
  expect([-30_001, -30_000, 89_999, 90_000].map((ms) => reasonAt(ms, 30))).toEqual([
    'jwt not active',
    '',
    '',
    'jwt expired',
  ]);
});

test.each<[Values, string[] | undefined]>([
  [{}, undefined],
  [{ scopes: [] }, []],
  [{ scopes: ['products:write', 'openid', 'users:*'] }, ['products:write']],
  [{ scope: 'openid products:write' }, ['products:write']],
  [{ scope: 'users:read,products:write' }, []],
  [{ scopes: ['users:read', 'products:write'], scope: 'products:write x' }, ['products:write']],
])('Decisions, who may write: %j limits the scopes to %j', (claims, scopes) => {
  expect(readAccessToken(contextAt(), withClaims(claims)).scopes).toEqual(scopes);
});

test('J35 a token of createAccessToken lives 900 seconds, or the given time, with these claims', () => {
  const ctx = contextAt(AT, { jwtIssuer: ISSUER, jwtAudience: AUDIENCE });
  const token = createAccessToken(ctx, { username: 'alice', sid: 's', scopes: ['users:read'] });
  const [header, payload] = token.split('.').map((part) => Buffer.from(part, 'base64url'));
  expect(JSON.parse(String(header))).toEqual({ alg: 'HS256', typ: 'JWT' });
  expect(JSON.parse(String(payload))).toEqual({
    sub: 'alice',
    sid: 's',
    scopes: ['users:read'],
    iat: NOW,
    exp: NOW + 900,
    jti: expect.stringMatching(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/),
    iss: ISSUER,
    aud: AUDIENCE,
  });
  expect(readAccessToken(ctx, createAccessToken(ctx, { username: 'alice' }, 60)).until).toEqual(
    new Date(AT + 60_000),
  );
});

test('J22 an access token is not a refresh token, nor vice versa', () => {
  const ctx = contextAt();
  const content = { sid: 's', generation: 1 };
  const refresh = createRefreshToken(ctx, content, new Date(AT + 1_000), ctx.now());
  expect(readRefreshToken(ctx, refresh)).toEqual(content);
  expect(reasonOf(ctx, refresh)).toBe('a refresh token is not an access token');
  expect(() => readRefreshToken(ctx, VALID)).toThrow('not a refresh token');
  const lacking = forge({ ...CLAIMS, generation: 1 }, { typ: 'refresh+jwt' });
  expect(() => readRefreshToken(ctx, lacking)).toThrow('invalid claim sid');
});

describe('rotation of secrets', () => {
  const [OLD, NEW] = ['old', 'new'].map((name) => `${name}-secret-`.repeat(4)) as [string, string];
  const contexts = [[OLD], [NEW, OLD], [NEW]].map((signingSecrets) =>
    contextAt(AT, { signingSecrets }),
  );

  test('J36 the first secret signs, all verify, and a removed one does not', () => {
    const tokens = contexts.map((ctx) => createAccessToken(ctx, { username: 'alice' }));
    // Also the second time, from the cache.
    for (let time = 0; time < 2; time++)
      expect(contexts.map((ctx) => tokens.map((token) => reasonOf(ctx, token) === ''))).toEqual([
        [true, false, false],
        [true, true, true],
        [false, true, true],
      ]);
  });

  test.each([undefined, 'unknown', null, 1, '__proto__'])(
    'J36 with any kid, a token is valid if any of our secrets signed it: %j',
    (kid) => {
      for (const [at, secret, isValid] of [
        [1, OLD, true],
        [1, NEW, true],
        [2, OLD, false],
      ] as const)
        expect(reasonOf(contexts[at] ?? contextAt(), forge(CLAIMS, { kid }, secret)) === '').toBe(
          isValid,
        );
    },
  );
});

describe('settings', () => {
  const read = (SIGNING_SECRET: string, more: Record<string, string> = {}) =>
    readConfig(
      { DATABASE_URL: 'postgresql://u@127.0.0.1:1/x', SIGNING_SECRET, ...more },
      () => 'x',
    );

  // Published secrets are guessed first.
  test.each([
    'kept-secret-'.repeat(3).slice(0, 31),
    '09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7',
    'a-string-secret-at-least-256-bits-long',
    ', ,',
  ])('J34 the secret %s is rejected in one line without the secret', (secret) => {
    for (const secrets of [secret, `${OTHER_SECRET},${secret}`].slice(
      0,
      secret.length < 4 ? 1 : 2,
    )) {
      expect(() => read(secrets)).toThrow(/^Invalid configuration:\n {2}SIGNING_SECRET [^\n]+$/);
      expect(() => read(secrets)).not.toThrow(secret.length < 4 ? OTHER_SECRET : secret);
    }
  });

  test('Decisions, tokens: 32 bytes are enough, and the leeway is at most 300 seconds', () => {
    expect(read('ä'.repeat(16)).signingSecrets).toEqual(['ä'.repeat(16)]);
    expect(read(OTHER_SECRET).jwtLeewaySeconds).toBe(0);
    expect(read(OTHER_SECRET, { JWT_LEEWAY_SECONDS: '300' }).jwtLeewaySeconds).toBe(300);
    expect(() => read(OTHER_SECRET, { JWT_LEEWAY_SECONDS: '301' })).toThrow('from 0 to 300');
  });
});

// 367 and 370 are, byte for byte, the token of 357, which is valid.
const SAME_AS_VALID = new Set(['signature 367', 'signature 370']);
// The header or payload contains a question mark, which is not base64url (RFC 7515, 2).
const NOT_BASE64URL = new Set(['signature 372', 'signature 373']);

test.each(wycheproof)('J9 Wycheproof, $id ($alg): $about', ({ alg, key, id, isValid, token }) => {
  const isGood = alg === 'HS256' && (SAME_AS_VALID.has(id) || (isValid && !NOT_BASE64URL.has(id)));
  const verify = () =>
    readSignedBy(createSecretKey(Buffer.from(key, 'base64url')), token).header.alg;
  if (isGood) expect(verify()).toBe('HS256');
  else expect(verify).toThrow(TokenError);
});

const shop = useShop();

test('J24 a user who never existed is rejected like a deleted one, by the same statements; J23 other subs send none', async () => {
  const gone = await shop.makeUser();
  await shop.sql(`delete from "user" where pk = ${gone.pk}`);
  shop.logged.length = 0;
  const observe = async (sub: unknown) => {
    const token = forge(claimsOf(shop, gone, { sub }));
    const { answer, statements } = await recordStatements(() =>
      shop.rest('GET', '/users/me/', { token }),
    );
    const headers = [...answer.headers].filter(([name]) => !/^(date|x-request-id)$/.test(name));
    return { status: answer.status, text: answer.text, headers, statements };
  };
  const rejected = await observe(gone.username);
  expect(await observe('never')).toEqual(rejected);
  expect(rejected).toMatchObject({
    status: 401,
    text: '{"detail":"Could not validate credentials"}',
    headers: expect.arrayContaining([['www-authenticate', 'Bearer']]),
    statements: [expect.any(String)],
  });
  expect(await observe({ $ne: null })).toEqual({ ...rejected, statements: [] });
  const reasons = shop.logged
    .map((line) => JSON.parse(line) as Values)
    .flatMap(({ event, reason }) => (event === 'auth.token' ? [reason] : []));
  expect(reasons).toEqual(['no such user', 'no such user', 'invalid claim sub']);
});

test.each<[string, Record<string, string>]>([
  ['/token', { scope: 'offline_access' }],
  // The client cannot choose the lifetime.
  ['/login', { expires_in: '999999', exp: '9999999999' }],
])('J35 a token of %s lives 1,800 seconds, with %j', async (path, extra) => {
  const user = await shop.makeUser();
  const form = { username: user.username, password: PASSWORD, ...extra };
  const { body } = await shop.rest('POST', path, { form });
  const read = async () =>
    (await shop.rest('GET', '/users/me/', { token: body.access_token })).status;
  shop.advanceClock(1_798_000);
  expect(await read()).toBe(200);
  shop.advanceClock(2_000);
  expect(await read()).toBe(401);
});

test.each([
  ['GET /users/me/', '', { detail: 'Duplicate Authorization header' }],
  [
    'POST /graphql',
    '{"query":"{ me { username } }"}',
    {
      errors: [{ message: 'Duplicate Authorization header', extensions: { code: 'BAD_REQUEST' } }],
    },
  ],
])('J33 two Authorization headers are 400, whichever is valid: %s', async (target, body, error) => {
  const good = `Authorization: Bearer ${shop.tokenOf(await shop.makeUser())}`;
  const head = `${target} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  for (const other of [good, 'authorization: Bearer x', 'Authorization:'])
    for (const two of [
      [good, other],
      [other, good],
    ]) {
      const answer = await shop.raw(`${head}${two.join('\r\n')}\r\n\r\n${body}`);
      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual(error);
    }
});

test('J32 a token in the query or in a body is ignored', async () => {
  const token = shop.tokenOf(await shop.makeUser({ scopes: ['products:write'] }));
  const json = { name: 'Pen', barcode: shop.newBarcode(), price: 1, access_token: token };
  const path = `/api/v1/shop/product/?access_token=${token}`;
  expect((await shop.rest('POST', path, { json })).status).toBe(401);
});

/** The parts of a context that the verifier reads. */
function contextAt(ms = AT, config: Partial<Config> = {}): Context {
  return {
    config: { signingSecrets: [TEST_SECRET], jwtLeewaySeconds: 0, ...config },
    now: () => new Date(ms),
  } as unknown as Context;
}

/** Returns why the token is rejected, or an empty text. */
function reasonOf(ctx: Context, token: string): string {
  try {
    readAccessToken(ctx, token);
    return '';
  } catch (error) {
    if (error instanceof TokenError) return error.message;
    throw error;
  }
}
