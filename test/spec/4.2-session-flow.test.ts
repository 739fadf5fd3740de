import { describe, expect, test } from '../support/jest.ts';
import { openSession } from '../support/logins.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const V2 = '/api/v2/auth/login';
const WRONG = { status: 401, body: { data: 'Incorrect login and/or password' } };
const ANONYMOUS = { status: 401, body: { detail: 'Not authenticated' } };

interface Credentials {
  username: string;
  password: string;
}

test.each([12345678, null, ['alice'], { $ne: '' }])(
  '4.2 POST /session/login rejects %j as username and as password',
  async (value) => {
    for (const field of ['username', 'password']) {
      const json = { username: 'alice', password: PASSWORD, [field]: value };
      const { status, body } = await shop.rest('POST', '/session/login', { json });
      expect(status).toBe(422);
      expect(body).toEqual({
        detail: [
          { type: 'string_type', loc: ['body', field], msg: 'Input should be a valid string' },
        ],
      });
    }
  },
);

test(`4.2 GET ${V2} takes HTTP Basic before query parameters`, async () => {
  const { username } = await shop.makeUser();
  const right = { username, password: PASSWORD };
  const wrong = { username, password: 'wrong' };
  const ask = (inHeader: Credentials, inQuery: Credentials) =>
    shop.rest('GET', `${V2}?${query(inQuery)}`, { headers: { Authorization: basic(inHeader) } });
  expect(await ask(right, wrong)).toMatchObject({ status: 200 });
  expect(outcomeOf(await ask(wrong, right))).toEqual(WRONG);
});

describe(`4.2 GET ${V2} without credentials`, () => {
  const CHALLENGE = 'Basic realm="shopfront", charset="UTF-8"';
  const REJECTED = { data: 'Incorrect login and/or password' };
  const seen = ({ status, headers, body }: Answer) => [
    status,
    headers.get('WWW-Authenticate'),
    body,
  ];

  test.each<[string, string, Record<string, string>]>([
    ['with nothing', '', {}],
    ['with another query', '?page=1', {}],
    ['with a bearer token, which is ignored', '', { Authorization: 'Bearer x' }],
    ['with HTTP Basic that cannot be read', '', { Authorization: 'Basic !' }],
    ['with HTTP Basic that is no UTF-8', '', { Authorization: 'Basic 4DrgCg==' }],
  ])('%s it is 401 and requests HTTP Basic', async (_what, search, headers) => {
    expect(seen(await shop.rest('GET', V2 + search, { headers }))).toEqual([
      401,
      CHALLENGE,
      REJECTED,
    ]);
    const head = await shop.rest('HEAD', V2 + search, { headers });
    expect([head.status, head.headers.get('WWW-Authenticate')]).toEqual([401, CHALLENGE]);
  });

  const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0';
  const POWERSHELL =
    'Mozilla/5.0 (Windows NT; Windows NT 10.0; en-US) WindowsPowerShell/5.1.19041.1';
  const WINHTTP = 'Mozilla/4.0 (compatible; Win32; WinHttp.WinHttpRequest.5)';

  test.each<[string, Record<string, string>]>([
    ['that sends Sec-Fetch-Site', { 'Sec-Fetch-Site': 'same-origin' }],
    ['on plain HTTP, without Sec-Fetch-Site', { 'User-Agent': FIREFOX }],
  ])(
    'it sends no challenge to a browser %s, which would show a dialog and store the password',
    async (_which, headers) => {
      expect(seen(await shop.rest('GET', V2, { headers }))).toEqual([401, null, REJECTED]);
    },
  );

  test.each(['curl/8.5.0', 'Wget/1.21.4', POWERSHELL, WINHTTP])(
    'it sends the challenge to a client that sends a password only after one: %s',
    async (name) => {
      expect(seen(await shop.rest('GET', V2, { headers: { 'User-Agent': name } }))).toEqual([
        401,
        CHALLENGE,
        REJECTED,
      ]);
    },
  );

  test('it counts as no login failure, and incomplete credentials are 422', async () => {
    await shop.rest('GET', V2);
    expect(await shop.sql('select * from login_failure')).toEqual([]);
    const half = await shop.rest('GET', `${V2}?username=alice`);
    expect([half.status, half.body.detail]).toEqual([
      422,
      [expect.objectContaining({ loc: ['query', 'password'] })],
    ]);
  });

  test('a wrong password is rejected without another challenge', async () => {
    const headers = { Authorization: basic({ username: 'nobody', password: 'x' }) };
    expect(seen(await shop.rest('GET', V2, { headers }))).toEqual([401, null, REJECTED]);
  });
});

test(`4.2 GET ${V2} logs that the user signed in, and never the query`, async () => {
  const { username } = await shop.makeUser({ password: 'not-for-the-log' });
  await shop.rest('GET', `${V2}?${query({ username, password: 'not-for-the-log' })}`);
  await shop.rest('GET', `${V2}?${query({ username, password: 'nor-this-for-the-log' })}`);
  expect(shop.logged.filter((line) => line.includes('auth.login'))).toHaveLength(2);
  expect(
    shop.logged.filter((line) => line.includes('for-the-log') || line.includes('password=')),
  ).toEqual([]);
});

/** Credentials by which POST /api/v2/auth/login finds the session to end. */
const BY: [string, (session: { key: string; token: string }) => Promise<Answer>][] = [
  ['the header X-SESSION-ID', ({ key }) => shop.rest('POST', V2, { sessionKey: key })],
  [
    'the header X-SESSIONID',
    ({ key }) => shop.rest('POST', V2, { headers: { 'X-SESSIONID': key } }),
  ],
  ['{"session_key"}', ({ key }) => shop.rest('POST', V2, { json: { session_key: key } })],
  ['a bearer token', ({ token }) => shop.rest('POST', V2, { token })],
];

test.each(BY)(`4.2 POST ${V2} rejects a disabled user with 400, by %s`, async (_by, logOut) => {
  const session = await openSession(shop);
  await shop.sql('update "user" set disabled = true');
  expect(outcomeOf(await logOut(session))).toEqual({
    status: 400,
    body: { detail: 'Inactive user' },
  });
});

test(`4.2 POST ${V2} ignores unknown fields, a token among them`, async () => {
  const json = { password: PASSWORD, access_token: shop.tokenOf(await shop.makeUser()) };
  expect(outcomeOf(await shop.rest('POST', V2, { json }))).toEqual(ANONYMOUS);
});

describe('with SESSION_PREFIX', () => {
  const prefixed = useShop({ SESSION_PREFIX: '/api/v1/auth' });

  test.each(['login', 'logout'])(
    '4.2 the %s of the session router is served under SESSION_PREFIX only',
    async (name) => {
      expect(await prefixed.rest('POST', `/api/v1/auth/${name}`, { json: {} })).toMatchObject({
        status: 422,
      });
      expect(await prefixed.rest('POST', `/session/${name}`, { json: {} })).toMatchObject({
        status: 404,
      });
    },
  );
});

describe('without LEGACY_QUERY_LOGIN', () => {
  const strict = useShop({ LEGACY_QUERY_LOGIN: 'false' });

  test(`4.2 GET ${V2} takes HTTP Basic only`, async () => {
    const { username } = await strict.makeUser();
    const credentials = { username, password: PASSWORD };
    expect(await strict.rest('GET', `${V2}?${query(credentials)}`)).toMatchObject({ status: 401 });
    expect(
      await strict.rest('GET', V2, { headers: { Authorization: basic(credentials) } }),
    ).toMatchObject({ status: 200 });
  });
});

function outcomeOf({ status, body }: Answer) {
  return { status, body };
}

function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function query({ username, password }: Credentials): string {
  return new URLSearchParams({ username, password }).toString();
}
