import { afterAll, beforeAll, describe, expect, jest, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { ConfigError, readConfig } from '../../src/core/config.ts';
import { PASSWORD, Shop, useShop, type Answer } from '../support/shop.ts';
import {
  tryCredentials,
  claimsOf,
  forge,
  REJECTED,
  servedAs,
  useControl,
} from '../support/forge.ts';

const OLD = 'an-old-secret-for-tests-of-more-than-32-bytes';
const NEW = 'the-new-secret-for-tests-of-more-than-32-bytes';
const NEWER = 'the-newer-secret-for-tests-of-more-than-32-bytes';
// The server checks its settings before it connects to a database.
const DATABASE_URL = 'postgresql://u@127.0.0.1:1/x';

const shop = useShop();
useControl(shop);

describe('the secret at startup', () => {
  const SHORT = 'kept-secret-'.repeat(3).slice(0, 31);
  const FASTAPI = '09d25e094faa6ca2556c818166b7a9563b93f7099f6f0f4caa6cf63b88e8d3e7';
  // Published in tutorials and standards, so guessed first.
  const BAD: [string, string][] = [
    ['of 31 bytes', SHORT],
    ['of 16 characters', 'kept-secret-0001'],
    ['from the tutorial of FastAPI', FASTAPI],
    ['from jwt.io', 'a-string-secret-at-least-256-bits-long'],
    [
      'from RFC 7515, A.1',
      'AyM1SysPpbyfDfZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow',
    ],
    [
      'from a tutorial of Spring',
      '404E635266556A586E3272357538782F413F4428472B4B6250645367566B5970',
    ],
  ];

  const waysToSet = BAD.flatMap(([what, secret]) => [
    [what, secret, secret],
    [`${what} after a valid one`, `${NEW},${secret}`, secret],
    [`${what} before a valid one`, `${secret},${NEW}`, secret],
  ]);

  test.each(waysToSet)(
    'J34 a secret %s is rejected by name, in one line without the secret',
    (_what = '', SIGNING_SECRET, secret = '') => {
      const { problems } = configErrorOf({ DATABASE_URL, SIGNING_SECRET });
      expect(problems).toEqual([expect.stringMatching(/^SIGNING_SECRET [^\n]+$/)]);
      for (const hidden of [secret, NEW]) expect(problems.join()).not.toContain(hidden);
      // Also on the embedded default, which generates a secret if none is set.
      expect(configErrorOf({ SIGNING_SECRET }).problems).toEqual(problems);
    },
  );

  test.each([
    ['a short secret', SHORT],
    ['a published secret', FASTAPI],
    ['a short second secret', `${NEW},${SHORT}`],
    ['a published second secret', `${NEW},${FASTAPI}`],
  ])('J34 the error for %s has one line without the secret', (_what, SIGNING_SECRET) => {
    const { message } = configErrorOf({ DATABASE_URL, SIGNING_SECRET });
    expect(message).toMatch(/^Invalid configuration:\n {2}SIGNING_SECRET [^\n]+$/);
    for (const secret of [SHORT, FASTAPI, NEW]) expect(message).not.toContain(secret);
  });

  test.each<[string, Record<string, string>, RegExp]>([
    ['none at all', {}, /^ {2}SIGNING_SECRET/m],
    ['an empty one', { SIGNING_SECRET: '' }, /^ {2}SIGNING_SECRET/m],
    ['a list of nothing', { SIGNING_SECRET: ', ,' }, /^ {2}SIGNING_SECRET /m],
  ])('J34 %s is rejected in one line', (_what, env, problem) => {
    const { message } = configErrorOf({ DATABASE_URL, ...env });
    expect(message).toMatch(/^Invalid configuration:\n {2}[^\n]+$/);
    expect(message).toMatch(problem);
    for (const secret of [OLD, NEW]) expect(message).not.toContain(secret);
  });

  test('J34 a weak secret is rejected on the embedded default, too, before one is generated', () => {
    const makeSecret = jest.fn(() => NEWER);
    expect(() => readConfig({ SIGNING_SECRET: SHORT }, makeSecret)).toThrow(ConfigError);
    expect(makeSecret).not.toHaveBeenCalled();
  });
});

describe('lifetimes', () => {
  const LOGIN = `mutation ($username: String!, $password: String!) {
    login(username: $username, password: $password) { accessToken refreshToken expiresIn }
  }`;
  const REFRESH =
    'mutation ($token: String!) { refresh(refreshToken: $token) { accessToken expiresIn } }';

  test.each<[string, Record<string, string>]>([
    ['/token', {}],
    ['/login', {}],
    ['/token', { scope: 'offline_access' }],
    ['/login', { grant_type: 'password', scope: 'users:read' }],
    // The client cannot choose the lifetime.
    ['/token', { expires_in: '999999', lifetime: '999999', exp: '9999999999' }],
  ])('J35 a token of %s lives 1,800 seconds, with %j', async (path, extra) => {
    const user = await shop.makeUser();
    const before = Math.floor(shop.now().getTime() / 1000);
    const { body } = await shop.rest('POST', path, {
      form: { username: user.username, password: PASSWORD, ...extra },
    });
    const { iat, exp } = times(body.access_token);
    expect(exp - iat).toBe(1800);
    expect(iat).toBeGreaterThanOrEqual(before);
    expect(iat).toBeLessThanOrEqual(Math.floor(shop.now().getTime() / 1000));
    expect(await tryCredentials(shop, body.access_token)).toEqual(servedAs(user));
    shop.advanceClock(1_800_000);
    expect(await tryCredentials(shop, body.access_token)).toEqual(REJECTED);
  });

  test('J35 refreshed and GraphQL tokens live as long, and their responses say so', async () => {
    const { username } = await shop.makeUser();
    const { body } = await shop.rest('POST', '/token', {
      form: { username, password: PASSWORD, scope: 'offline_access' },
    });
    const refreshed = await shop.rest('POST', '/token', {
      form: { grant_type: 'refresh_token', refresh_token: body.refresh_token },
    });
    const { login } = (await shop.graphql(LOGIN, { username, password: PASSWORD })).body.data;
    const { refresh } = (await shop.graphql(REFRESH, { token: login.refreshToken })).body.data;
    for (const token of [refreshed.body.access_token, login.accessToken, refresh.accessToken]) {
      expect(times(token).exp - times(token).iat).toBe(1800);
    }
    expect([
      body.expires_in,
      refreshed.body.expires_in,
      login.expiresIn,
      refresh.expiresIn,
    ]).toEqual([1800, 1800, 1800, 1800]);
  });

  test.each<[string, number | undefined, number]>([
    ['900 seconds by default', undefined, 900],
    ['the given lifetime', 60, 60],
  ])('J35 a token of createAccessToken lives %s', async (_what, lifetime, seconds) => {
    const user = await shop.makeUser();
    const token = createAccessToken(shop.context(), { username: user.username }, lifetime);
    expect(times(token).exp - times(token).iat).toBe(seconds);
    expect(await tryCredentials(shop, token)).toEqual(servedAs(user));
    shop.advanceClock(seconds * 1_000);
    expect(await tryCredentials(shop, token)).toEqual(REJECTED);
  });
});

describe('rotation', () => {
  // One database, four instances: before a rotation, during it, after it, and during the next one.
  const withSecrets = (...secrets: string[]) => new Shop({ SIGNING_SECRET: secrets.join(',') });
  const before = withSecrets(OLD);
  const during = withSecrets(NEW, OLD);
  const after = withSecrets(NEW);
  const next = withSecrets(NEWER, NEW);
  const all = [before, during, after, next];

  beforeAll(() => Promise.all(all.map((at) => at.start())));
  afterAll(() => Promise.all(all.map((at) => at.stop())));

  test('J36 the first secret signs, all verify, and a removed one does not', async () => {
    const user = await shop.makeUser();
    const tokens = all.map((at) => at.tokenOf(user));
    const secretOf = tokens.map((token) =>
      [OLD, NEW, NEWER].filter((secret) => isSignedBy(token, secret)),
    );
    expect(secretOf).toEqual([[OLD], [NEW], [NEW], [NEWER]]);
    // Repeatedly, so that tokens cached by one instance do not affect another.
    for (let time = 0; time < 2; time++) {
      expect(
        await Promise.all(all.map((at) => Promise.all(tokens.map((token) => statusAt(at, token))))),
      ).toEqual([
        [200, 401, 401, 401],
        [200, 200, 200, 401],
        [401, 200, 200, 401],
        [401, 200, 200, 200],
      ]);
    }
    expect(await tryCredentials(during, String(tokens[0]))).toEqual(servedAs(user));
    expect(await tryCredentials(after, String(tokens[0]))).toEqual(REJECTED);
  });

  test('J36 during a rotation an old token is served until its exp, and no longer', async () => {
    const user = await shop.makeUser();
    const token = before.tokenOf(user, 60);
    expect(await tryCredentials(during, token)).toEqual(servedAs(user));
    during.advanceClock(60_000);
    try {
      expect(await tryCredentials(during, token)).toEqual(REJECTED);
    } finally {
      during.advanceClock(-60_000);
    }
  });

  test('J36 a refresh token of the old secret yields tokens of the new one', async () => {
    const user = await shop.makeUser();
    const form = { username: user.username, password: PASSWORD, scope: 'offline_access' };
    const { body } = await before.rest('POST', '/token', { form });
    const refresh = (at: Shop, refresh_token: string): Promise<Answer> =>
      at.rest('POST', '/token', { form: { grant_type: 'refresh_token', refresh_token } });
    expect((await refresh(after, body.refresh_token)).status).toBe(401);
    const refreshed = await refresh(during, body.refresh_token);
    expect(refreshed.status).toBe(200);
    expect(await tryCredentials(after, refreshed.body.access_token)).toEqual(servedAs(user));
    expect((await refresh(after, refreshed.body.refresh_token)).status).toBe(200);
  });

  test('J36 session keys and revocation do not depend on the secret', async () => {
    const user = await shop.makeUser();
    const { key, session } = await sessions.open(before.context(), user, null);
    const token = createAccessToken(before.context(), {
      username: user.username,
      sid: session.sid,
    });
    expect(await tryCredentials(during, token)).toEqual(servedAs(user));
    expect(
      await Promise.all(
        all.map(async (at) => (await at.rest('GET', '/users/me/', { sessionKey: key })).status),
      ),
    ).toEqual([200, 200, 200, 200]);
    expect(
      (await after.rest('POST', '/session/logout', { json: { session_key: key } })).status,
    ).toBe(200);
    expect(await tryCredentials(during, token)).toEqual(REJECTED);
  });

  test('J36 the header identifies the signing secret without revealing it', async () => {
    const user = await shop.makeUser();
    const kids = all.map((at) => kidOf(at.tokenOf(user)));
    expect(kids).toEqual([expect.any(String), kids[1], kids[1], expect.any(String)]);
    expect(new Set(kids).size).toBe(3);
    // The kid depends on the secret alone, so other processes compute the same.
    expect(kids[0]).not.toBe('');
    for (const kid of kids)
      for (const secret of [OLD, NEW, NEWER]) expect(secret).not.toContain(kid);
  });

  test.each<[string, (kids: { ofOld: unknown; ofNew: unknown }) => unknown]>([
    ['none', () => undefined],
    ['unknown', () => 'unknown'],
    ['null', () => null],
    ['a number', () => 1],
    ['an object', () => ({})],
    ['a name of the prototype', () => '__proto__'],
    ['the other', ({ ofNew }) => ofNew],
    ['its own', ({ ofOld }) => ofOld],
  ])(
    'J36 with any kid, a token is valid if any of our secrets signed it: %s',
    async (_what, choose) => {
      const user = await shop.makeUser();
      const kid = choose({ ofOld: kidOf(before.tokenOf(user)), ofNew: kidOf(after.tokenOf(user)) });
      const claims = claimsOf(during, user);
      // Another issuer that shares the secret may choose any kid.
      expect(await tryCredentials(during, forge(claims, { kid }, OLD))).toEqual(servedAs(user));
      expect(await tryCredentials(during, forge(claims, { kid }, NEW))).toEqual(servedAs(user));
      expect(await tryCredentials(during, forge(claims, { kid }, NEWER))).toEqual(REJECTED);
      expect(await tryCredentials(after, forge(claims, { kid }, OLD))).toEqual(REJECTED);
    },
  );
});

/** Returns the configuration error. A secret is generated on the embedded default only. */
function configErrorOf(env: Record<string, string>): ConfigError {
  try {
    readConfig(env, ({ databaseUrl }) => (databaseUrl === undefined ? NEWER : undefined));
  } catch (error) {
    if (error instanceof ConfigError) return error;
    throw error;
  }
  throw new Error('The configuration was accepted');
}

function times(token: string): { iat: number; exp: number } {
  const { iat = 0, exp = 0 } = jwt.decode(token) as jwt.JwtPayload;
  return { iat, exp };
}

function kidOf(token: string): unknown {
  return jwt.decode(token, { complete: true })?.header.kid;
}

function isSignedBy(token: string, secret: string): boolean {
  try {
    jwt.verify(token, secret, { algorithms: ['HS256'] });
    return true;
  } catch {
    return false;
  }
}

async function statusAt(at: Shop, token: string): Promise<number> {
  return (await at.rest('GET', '/users/me/', { token })).status;
}
