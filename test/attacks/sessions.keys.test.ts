import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { describe, expect, test } from '../support/jest.ts';
import { newSecretKey } from '../../src/core/secret-key.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import { createAccessToken, createRefreshToken } from '../../src/features/auth/tokens/token.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import {
  PASSWORD,
  useShop,
  workerDatabase,
  type Answer,
  type RequestOptions,
} from '../support/shop.ts';
import { leaksIn } from '../support/forge.ts';

const shop = useShop();

const KEY = /^[A-Za-z0-9_-]{43}$/;
const LOGIN = `mutation ($username: String!, $password: String!) {
  login(username: $username, password: $password) { sessionKey accessToken refreshToken }
}`;

/** Logins that return a session key; `request` and `more` hold what else the client sends. */
type Login = (user: User, request?: RequestOptions, more?: object) => Promise<Answer>;
const ENDPOINTS: [string, Login][] = [
  [
    'the session router',
    ({ username }, request, more) =>
      shop.rest('POST', '/session/login', {
        ...request,
        json: { username, password: PASSWORD, ...more },
      }),
  ],
  [
    'POST /api/v2/auth/login',
    ({ username }, request, more) =>
      shop.rest('POST', '/api/v2/auth/login', {
        ...request,
        json: { username, password: PASSWORD, ...more },
      }),
  ],
  [
    'GET /api/v2/auth/login by query',
    ({ username }, request, more) =>
      shop.rest(
        'GET',
        `/api/v2/auth/login?${new URLSearchParams({ username, password: PASSWORD, ...more }).toString()}`,
        request,
      ),
  ],
  [
    'GET /api/v2/auth/login by Basic',
    ({ username }, request, more) =>
      shop.rest('GET', `/api/v2/auth/login?${new URLSearchParams({ ...more }).toString()}`, {
        ...request,
        headers: {
          ...request?.headers,
          Authorization: `Basic ${Buffer.from(`${username}:${PASSWORD}`).toString('base64')}`,
        },
      }),
  ],
  [
    'login of GraphQL',
    ({ username }, request) => shop.graphql(LOGIN, { username, password: PASSWORD }, request),
  ],
];

/** Places where a client can send a key of its choice. */
const PLACES: [string, (key: string) => { request?: RequestOptions; more?: object }][] = [
  [
    'the body or the query',
    (key) => ({ more: { session_key: key, sessionKey: key, key, sid: key, session: key } }),
  ],
  ['a header', (key) => ({ request: { headers: { 'X-SESSION-ID': key, 'X-SESSIONID': key } } })],
  [
    'a cookie',
    (key) => ({
      request: { headers: { Cookie: `session_key=${key}; sessionid=${key}; X-SESSION-ID=${key}` } },
    }),
  ],
];

describe('a key', () => {
  test('S1 10,000 keys differ, also in their first and last 12 characters, and no bit of 256 is biased', () => {
    const keys = Array.from({ length: 10_000 }, newSecretKey);
    expect(keys.filter((key) => !KEY.test(key))).toEqual([]);
    expect(new Set(keys).size).toBe(10_000);
    // 72 random bits each: a collision occurs once in 10^14 runs.
    for (const part of [keys.map((key) => key.slice(0, 12)), keys.map((key) => key.slice(-12))])
      expect(new Set(part).size).toBe(10_000);
    const ones = Array<number>(256).fill(0);
    for (const key of keys) {
      const bytes = Buffer.from(key, 'base64url');
      expect(bytes).toHaveLength(32);
      for (let bit = 0; bit < 256; bit++)
        ones[bit] = (ones[bit] ?? 0) + (((bytes[bit >> 3] ?? 0) >> (bit & 7)) & 1);
    }
    // Eight standard deviations of 50 around the half.
    expect(ones.filter((count) => Math.abs(count - 5_000) > 400)).toEqual([]);
  });

  test.each(ENDPOINTS)(
    'S1 %s returns such a key, a new one each time, without data of user or session',
    async (_name, login) => {
      const user = await shop.makeUser();
      const keys = [keyIn(await login(user)), keyIn(await login(user)), keyIn(await login(user))];
      for (const key of keys) expect(key).toMatch(KEY);
      expect(new Set(keys.map((key) => key.slice(0, 8))).size).toBe(3);
      const rows = await shop.sql('select sid::text, user_pk from session');
      for (const { sid } of rows) {
        for (const key of keys)
          expect(
            Buffer.from(key, 'base64url').includes(
              Buffer.from(String(sid).replaceAll('-', ''), 'hex'),
            ),
          ).toBe(false);
      }
    },
  );

  test('S2 after every kind of login, the database holds the SHA-256 of each key, and no key, token or password', async () => {
    const canary = 'canary-password-9f3a';
    const user = await shop.makeUser({
      username: 'canary-user',
      password: canary,
      scopes: ['products:write'],
    });
    const made = await shop.makeUser();
    const keys: string[] = [];
    for (const [, login] of ENDPOINTS) keys.push(keyIn(await login(made)));
    const { key, session } = await sessions.open(
      { ...shop.context(), userAgent: 'canary-agent' },
      user,
      null,
    );
    keys.push(key);
    const token = createAccessToken(shop.context(), { username: user.username, sid: session.sid });
    const refresh = createRefreshToken(
      shop.context(),
      { sid: session.sid, generation: 0 },
      session.expiresAt,
      session.createdAt,
    );
    // Writes with the key, and failed logins.
    const product = { name: 'Canary lamp', barcode: shop.newBarcode(), price: 1 };
    const created = await shop.rest('POST', '/api/v1/shop/product/', {
      sessionKey: key,
      json: product,
      headers: { 'Idempotency-Key': 'canary-idempotency' },
    });
    expect(created.status).toBe(201);
    for (const wrong of [key, token]) {
      const json = { username: 'canary-nobody', password: wrong };
      expect((await shop.rest('POST', '/session/login', { json })).status).toBe(401);
    }

    const dump = await contentOfDatabase();
    expect(dump.includes('canary-user')).toBe(true);
    expect(dump.includes('canary-agent')).toBe(true);
    const dumps = (bytes: Buffer): boolean =>
      dump.includes(bytes) || dump.includes(bytes.toString('hex'));
    for (const issued of keys) {
      expect(dumps(createHash('sha256').update(issued).digest())).toBe(true);
      for (const form of [
        Buffer.from(issued),
        Buffer.from(issued, 'base64url'),
        Buffer.from(Buffer.from(issued).toString('base64')),
      ]) {
        expect(dumps(form)).toBe(false);
      }
    }
    // Not PASSWORD: other tests may have stored it as a name, and files retain deleted data.
    for (const secret of [canary, ...token.split('.').slice(1), ...refresh.split('.').slice(1)]) {
      expect(dumps(Buffer.from(secret))).toBe(false);
    }
    expect(
      leaksIn(shop, [...keys, canary, PASSWORD, ...token.split('.'), ...refresh.split('.')]),
    ).toEqual([]);
  }, 60_000);
});

describe('a key that the client sends to a login', () => {
  test.each(
    ENDPOINTS.flatMap(([endpoint, login]) =>
      PLACES.map(([place, withKey]) => [endpoint, place, login, withKey] as const),
    ),
  )('S3 %s ignores a key in %s and returns a new one', async (endpoint, place, login, withKey) => {
    const user = await shop.makeUser();
    const other = await shop.makeUser();
    const { key: live } = await sessions.open(shop.context(), other, null);
    const { key: own } = await sessions.open(shop.context(), user, null);
    const bearers = { [live]: other.username, [own]: user.username };
    for (const sent of [newSecretKey(), live, own]) {
      const { request, more } = withKey(sent);
      const answer = await login(user, request, more);
      const answered = answer.status === 200 ? keyIn(answer) : undefined;
      const [asNew, asSent] = await Promise.all(
        [answered, sent].map(async (key) => key && bearerOf(key)),
      );
      // Invalid credentials fail every GraphQL request (graphql.md), also a login.
      const isRejected = endpoint === 'login of GraphQL' && place === 'a header' && !bearers[sent];
      expect([answer.status, asNew]).toEqual(isRejected ? [401, undefined] : [200, user.username]);
      expect(answered).not.toBe(sent);
      // The sent key is unchanged: of another session, or of none.
      expect(asSent).toBe(bearers[sent] ?? 'Not authenticated');
      expect((await logout(sent)).text).toBe(
        bearers[sent] ? '{"data":"Logout successful"}' : '{"data":"Invalid session key"}',
      );
    }
  });
});

describe('a key that differs from the issued one', () => {
  const CHANGES: [string, (key: string) => string][] = [
    ['S8 empty', () => ''],
    ['S8 of 600 characters', () => 'x'.repeat(600)],
    ['S8 of 10,000 characters', () => 'x'.repeat(10_000)],
    ['S8 with a NUL behind it', (key) => `${key}\0`],
    ['S8 a NUL', () => '\0'],
    ['S8 of emoji', () => '🔑'.repeat(43)],
    ['S8 with half of a surrogate pair', (key) => `${key}\ud800`],
    ['S8 of SQL', () => "' or '1'='1"],
    ['S8 of slow SQL', () => "'; select pg_sleep(60); --"],
    ['S8 of a pattern', () => '%'],
    ['S8 of a name of the prototype', () => '__proto__'],
    ['S8 unknown, in the form of a key', () => newSecretKey()],
    ['S8 equal to the stored hash', (key) => createHash('sha256').update(key).digest('hex')],
    [
      'S8 equal to the stored hash, in base64url',
      (key) => createHash('sha256').update(key).digest('base64url'),
    ],
    ['S9 in upper case', (key) => key.toUpperCase()],
    ['S9 in lower case', (key) => key.toLowerCase()],
    ['S9 with space around it', (key) => ` ${key} `],
    ['S9 with a tab before it', (key) => `\t${key}`],
    ['S9 with a line break behind it', (key) => `${key}\n`],
    [
      'S9 percent-encoded',
      (key) => [...key].map((sign) => `%${sign.charCodeAt(0).toString(16)}`).join(''),
    ],
    ['S9 padded', (key) => `${key}=`],
    ['S9 in hexadecimal digits', (key) => Buffer.from(key, 'base64url').toString('hex')],
    ['S9 in base64 of base64', (key) => Buffer.from(key).toString('base64url')],
    ['S9 of the same bytes with another last character', sameBytes],
    [
      'S9 in full-width letters',
      (key) =>
        key.replace(/[a-zA-Z0-9]/g, (sign) => String.fromCharCode(sign.charCodeAt(0) + 0xfee0)),
    ],
    ['S9 with a zero-width space', (key) => `${key}\u200b`],
    ['S9 in quotation marks', (key) => `"${key}"`],
    ['S9 without its last character', (key) => key.slice(0, -1)],
    ['S9 without its first character', (key) => key.slice(1)],
    ['S9 twice', (key) => key + key],
    ['S9 backwards', (key) => [...key].toReversed().join('')],
  ];

  test.each(CHANGES)(
    '%s: rejected everywhere, and the session continues',
    async (_what, change) => {
      const { key } = await sessions.open(shop.context(), await shop.makeUser(), null);
      // Some changes leave some keys equal.
      const changed = change(key) === key ? `${key}x` : change(key);
      expectInvalidKey(await logout(changed));
      const v2 = await shop.rest('POST', '/api/v2/auth/login', { json: { session_key: changed } });
      expect([v2.status, v2.text]).toEqual([401, '{"detail":"Not authenticated"}']);
      const graphql = await shop.graphql(
        'mutation ($key: String) { logout(sessionKey: $key) { ended } }',
        { key: changed },
        { sessionKey: key },
      );
      expect(graphql.body).toMatchObject({
        data: null,
        errors: [{ message: 'Invalid session key', extensions: { code: 'UNAUTHENTICATED' } }],
      });
      // HTTP trims header values and allows few characters.
      const header = /^[!-~]{1,1000}$/.test(changed) ? changed : newSecretKey();
      expect(await statusWith(header)).toBe(401);
      expect(await statusWith(key)).toBe(200);
      expect(leaksIn(shop, [key, changed])).toEqual([]);
    },
  );

  test.each(['/session/logout', '/api/v2/auth/login'])(
    'S8 a key of 1 MB is 413 at %s',
    async (path) => {
      const { key } = await sessions.open(shop.context(), await shop.makeUser(), null);
      const answer = await shop.rest('POST', path, {
        json: { session_key: 'x'.repeat(1_048_576) },
      });
      // Under `data`, as in all of the session router (decisions, errors).
      expect([answer.status, answer.body]).toEqual([413, { data: expect.any(String) }]);
      expect(await statusWith(key)).toBe(200);
    },
  );
});

describe('the headers', () => {
  test.each<[string, (key: string, other: string) => string[], number]>([
    ['X-SESSION-ID alone', (key) => [`X-SESSION-ID: ${key}`], 200],
    ['X-SESSIONID alone', (key) => [`X-SESSIONID: ${key}`], 200],
    ['either in any case', (key) => [`x-session-id: ${key}`, `X-SessionId: ${key}`], 200],
    ['both, the same', (key) => [`X-SESSION-ID: ${key}`, `X-SESSIONID: ${key}`], 200],
    [
      'both, the same, the other way round',
      (key) => [`X-SESSIONID: ${key}`, `X-SESSION-ID: ${key}`],
      200,
    ],
    [
      'both, different, each of a live session of the user',
      (key, other) => [`X-SESSION-ID: ${key}`, `X-SESSIONID: ${other}`],
      401,
    ],
    ['both, the second wrong', (key) => [`X-SESSION-ID: ${key}`, 'X-SESSIONID: x'], 401],
    ['both, the first wrong', (key) => ['X-SESSION-ID: x', `X-SESSIONID: ${key}`], 401],
    ['both, the first empty', (key) => ['X-SESSION-ID:', `X-SESSIONID: ${key}`], 401],
    ['both, the second empty', (key) => [`X-SESSION-ID: ${key}`, 'X-SESSIONID:'], 401],
    [
      'X-SESSION-ID twice, different',
      (key, other) => [`X-SESSION-ID: ${key}`, `X-SESSION-ID: ${other}`],
      401,
    ],
    [
      'X-SESSIONID twice, different',
      (key, other) => [`X-SESSIONID: ${key}`, `X-SESSIONID: ${other}`],
      401,
    ],
    [
      'X-SESSION-ID twice, the second wrong',
      (key) => [`X-SESSION-ID: ${key}`, 'X-SESSION-ID: x'],
      401,
    ],
    ['two keys in one header', (key, other) => [`X-SESSION-ID: ${key}, ${other}`], 401],
    ['an empty key', () => ['X-SESSION-ID:'], 401],
    ['a name with an underscore', (key) => [`X_SESSION_ID: ${key}`], 401],
    [
      'a cookie',
      (key) => [`Cookie: session_key=${key}; X-SESSION-ID=${key}; sessionid=${key}`],
      401,
    ],
  ])('S10 %s', async (_what, headers, status) => {
    const user = await shop.makeUser();
    const { key } = await sessions.open(shop.context(), user, null);
    const { key: other } = await sessions.open(shop.context(), user, null);
    const send = (...lines: string[]) =>
      shop.raw(
        `GET /users/me/ HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n${lines.join('\r\n')}\r\n\r\n`,
      );
    const answer = await send(...headers(key, other));
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer.slice(answer.indexOf('\r\n\r\n') + 4)).toMatch(
      status === 200 ? `"username":"${user.username}"` : /^\{"detail":"Not authenticated"\}$/,
    );
    expect(await send(`X-SESSION-ID: ${other}`)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

/** Returns the rows of all tables, and a pg_dump where this machine has it in a suitable version. */
async function contentOfDatabase(): Promise<Buffer> {
  const tables = await shop.sql(
    `select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname <> 'pg_catalog'`,
  );
  const rows = await Promise.all(
    tables.map(({ name }) => shop.sql(`select rows::text as row from ${String(name)} as rows`)),
  );
  const dump = promisify(execFile)('pg_dump', ['--inserts', workerDatabase().DATABASE_URL], {
    encoding: 'buffer',
    maxBuffer: 1e9,
  });
  return Buffer.concat([
    Buffer.from(JSON.stringify(rows)),
    await dump.then(({ stdout }) => stdout).catch(() => Buffer.alloc(0)),
  ]);
}

function keyIn({ body }: Answer): string {
  return String(body.session_key ?? body.data.login.sessionKey);
}

function logout(key: string): Promise<Answer> {
  return shop.rest('POST', '/session/logout', { json: { session_key: key } });
}

function expectInvalidKey({ status, text }: Answer): void {
  expect([status, text]).toEqual([401, '{"data":"Invalid session key"}']);
}

/** Returns the username that this key authenticates, or the error. */
async function bearerOf(sessionKey: string): Promise<unknown> {
  const { body } = await shop.rest('GET', '/users/me/', { sessionKey });
  return body.username ?? body.detail;
}

async function statusWith(sessionKey: string): Promise<number> {
  return (await shop.rest('GET', '/users/me/', { sessionKey })).status;
}

/** Encodes the same 32 bytes differently: a decoder ignores two bits of the last character. */
function sameBytes(key: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return key.slice(0, -1) + alphabet.charAt(alphabet.indexOf(key.slice(-1)) + 1);
}
