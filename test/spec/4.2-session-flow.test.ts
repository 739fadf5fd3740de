import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const V2 = '/api/v2/auth/login';

interface Credentials {
  username: string;
  password: string;
}

describe(`4.2 GET ${V2} without credentials`, () => {
  const CHALLENGE = 'Basic realm="shopfront", charset="UTF-8"';
  const REJECTED = { data: 'Incorrect login and/or password' };
  const seen = ({ status, headers, body }: Answer) => [
    status,
    headers.get('WWW-Authenticate'),
    body,
  ];

  test.each<[string, Record<string, string>]>([
    ['with nothing', {}],
    ['with a bearer token, which is ignored', { Authorization: 'Bearer x' }],
    ['with HTTP Basic that cannot be read', { Authorization: 'Basic !' }],
    // Clients that send a password only after a challenge.
    ['by curl', { 'User-Agent': 'curl/8.5.0' }],
    ['by Wget', { 'User-Agent': 'Wget/1.21.4' }],
  ])('%s it is 401 and requests HTTP Basic', async (_what, headers) => {
    expect(seen(await shop.rest('GET', V2, { headers }))).toEqual([401, CHALLENGE, REJECTED]);
    const head = await shop.rest('HEAD', V2, { headers });
    expect([head.status, head.headers.get('WWW-Authenticate')]).toEqual([401, CHALLENGE]);
  });

  test('it sends no challenge to a browser, which would show a dialog and store the password', async () => {
    const headers = { 'Sec-Fetch-Site': 'same-origin' };
    expect(seen(await shop.rest('GET', V2, { headers }))).toEqual([401, null, REJECTED]);
  });

  test('it counts as no login failure, and incomplete credentials are 422', async () => {
    await shop.rest('GET', V2);
    expect(await shop.sql('select * from login_failure')).toEqual([]);
    const half = await shop.rest('GET', `${V2}?username=alice`);
    expect([half.status, half.body.detail]).toEqual([
      422,
      [expect.objectContaining({ loc: ['query', 'password'] })],
    ]);
  });
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

function basic({ username, password }: Credentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

function query({ username, password }: Credentials): string {
  return new URLSearchParams({ username, password }).toString();
}
