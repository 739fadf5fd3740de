import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import jwt from 'jsonwebtoken';
import { PASSWORD, Shop, useShop, type RequestOptions } from '../support/shop.ts';

const SETTINGS = { REFRESH_REUSE_SECONDS: '300' };
const WINDOW_MS = 300_000;
const LOGIN = `mutation ($username: String!, $password: String!) {
  login(username: $username, password: $password) { accessToken refreshToken sessionKey }
}`;
const REFRESH =
  'mutation ($token: String!) { refresh(refreshToken: $token) { accessToken refreshToken sessionKey } }';

// Long enough for a slow machine.
const shop = useShop(SETTINGS);
/** A second instance on the same database. */
const secondShop = new Shop(SETTINGS);
const strict = useShop({ REFRESH_REUSE_SECONDS: '0' });

beforeAll(() => secondShop.start());
afterAll(() => secondShop.stop());

interface Refreshed {
  status: number;
  accessToken: string;
  refreshToken: string;
  /** REST returns none. */
  sessionKey?: string;
}

type Refresh = (token: string, at?: Shop) => Promise<Refreshed>;

const byRest: Refresh = async (refresh_token, at = shop) => {
  const { status, body } = await at.rest('POST', '/token', {
    form: { grant_type: 'refresh_token', refresh_token },
  });
  if (status !== 200)
    expect([body.error, body.detail]).toEqual(['invalid_grant', 'Could not validate credentials']);
  return { status, accessToken: body.access_token, refreshToken: body.refresh_token };
};
const byGraphql: Refresh = async (token, at = shop) => {
  const { body } = await at.graphql(REFRESH, { token });
  return { status: body.errors ? 401 : 200, ...body.data?.refresh };
};

describe.each<[string, Refresh]>([
  ['REST', byRest],
  ['GraphQL', byGraphql],
])('a refresh token that was used, by %s', (_api, refresh) => {
  test('within REFRESH_REUSE_SECONDS it gets the same refresh token and session key, and the session continues', async () => {
    const first = await signIn();
    const second = await refresh(first.refreshToken);
    // To another second, in which a different token would be issued.
    shop.advanceClock(WINDOW_MS / 2);
    const again = await refresh(first.refreshToken);
    expect([again.status, again.refreshToken, again.sessionKey]).toEqual([
      200,
      second.refreshToken,
      second.sessionKey,
    ]);
    for (const { accessToken, sessionKey } of [first, second, again]) {
      expect(await isSignedIn({ token: accessToken })).toBe(true);
      if (sessionKey !== undefined && sessionKey !== first.sessionKey)
        expect(await isSignedIn({ sessionKey })).toBe(true);
    }
    expect(await refresh(again.refreshToken)).toMatchObject({ status: 200 });
  });

  test('after that it is rejected, and ends its session with all credentials', async () => {
    const first = await signIn();
    const second = await refresh(first.refreshToken);
    shop.advanceClock(WINDOW_MS);
    expect(await refresh(first.refreshToken)).toMatchObject({ status: 401 });
    expect(await refresh(second.refreshToken)).toMatchObject({ status: 401 });
    for (const { accessToken: token } of [first, second])
      expect(await isSignedIn({ token })).toBe(false);
  });

  test('a second use does not extend the time', async () => {
    const first = await signIn();
    await refresh(first.refreshToken);
    shop.advanceClock(WINDOW_MS / 2);
    await refresh(first.refreshToken);
    shop.advanceClock(WINDOW_MS / 2);
    expect(await refresh(first.refreshToken)).toMatchObject({ status: 401 });
  });

  test('an older token than the last is rejected at once, and ends its session', async () => {
    const first = await signIn();
    const second = await refresh(first.refreshToken);
    const third = await refresh(second.refreshToken);
    expect(await refresh(first.refreshToken)).toMatchObject({ status: 401 });
    expect(await isSignedIn({ token: third.accessToken })).toBe(false);
    expect(await refresh(third.refreshToken)).toMatchObject({ status: 401 });
  });

  test('ten concurrent requests on two instances get the same generation', async () => {
    const { refreshToken } = await signIn();
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        refresh(refreshToken, index % 2 ? shop : secondShop),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
    expect(new Set(answers.map((answer) => answer.refreshToken)).size).toBe(1);
    expect(new Set(answers.map((answer) => answer.sessionKey)).size).toBe(1);
    expect(await shop.sql('select refresh_generation from session')).toEqual([
      { refresh_generation: 1 },
    ]);
    for (const { accessToken: token } of answers) expect(await isSignedIn({ token })).toBe(true);
  });

  test('with REFRESH_REUSE_SECONDS=0 it is rejected at once', async () => {
    const first = await signIn(strict);
    const second = await refresh(first.refreshToken, strict);
    expect(await refresh(first.refreshToken, strict)).toMatchObject({ status: 401 });
    expect(await isSignedIn({ token: second.accessToken })).toBe(false);
  });

  test('it is rejected if the session has ended or the user was disabled meanwhile', async () => {
    const first = await signIn();
    const { accessToken } = await refresh(first.refreshToken);
    await shop.graphql('mutation { logout { ended } }', {}, { token: accessToken });
    expect(await refresh(first.refreshToken)).toMatchObject({ status: 401 });
    const other = await signIn();
    await refresh(other.refreshToken);
    await shop.sql(`update session set ended_at = now(); update "user" set disabled = true`);
    expect(
      (
        await shop.rest('POST', '/token', {
          form: { grant_type: 'refresh_token', refresh_token: other.refreshToken },
        })
      ).status,
    ).toBe(400);
  });
});

test('a refresh token used by one API gets the same generation by the other', async () => {
  const { refreshToken } = await signIn();
  const second = await byRest(refreshToken);
  const again = await byGraphql(refreshToken);
  expect([again.status, again.refreshToken]).toEqual([200, second.refreshToken]);
  expect(await isSignedIn({ sessionKey: String(again.sessionKey) })).toBe(true);
  expect((await byRest(refreshToken)).refreshToken).toBe(second.refreshToken);
});

test('a refresh by GraphQL replaces the session key, a refresh by REST does not', async () => {
  const { refreshToken, sessionKey } = await signIn();
  const second = await byGraphql((await byRest(refreshToken)).refreshToken);
  const third = await byRest(second.refreshToken);
  const keys = [sessionKey, String(second.sessionKey)];
  expect(await Promise.all(keys.map((key) => isSignedIn({ sessionKey: key })))).toEqual([
    false,
    true,
  ]);
  const fourth = await byGraphql(third.refreshToken);
  expect(await isSignedIn({ sessionKey: String(second.sessionKey) })).toBe(false);
  expect(await isSignedIn({ sessionKey: String(fourth.sessionKey) })).toBe(true);
});

test('a session key of a stolen refresh token, used once or twice, ends with the session when the theft is detected', async () => {
  const { refreshToken, sessionKey } = await signIn();
  const stolen = await byGraphql(refreshToken);
  const again = await byGraphql(stolen.refreshToken);
  expect((await byRest(refreshToken)).status).toBe(401);
  for (const key of [sessionKey, stolen.sessionKey, again.sessionKey])
    expect(await isSignedIn({ sessionKey: String(key) })).toBe(false);
  expect(await shop.sql('select sid from session')).toEqual([]);
});

test('a refresh token expires with its session, as of its rotation', async () => {
  const { refreshToken } = await signIn();
  const issued = jwt.decode(refreshToken) as jwt.JwtPayload;
  expect(Number(issued.exp) - Number(issued.iat)).toBe(14 * 86_400);
  shop.advanceClock(86_400_000);
  const next = jwt.decode((await byRest(refreshToken)).refreshToken) as jwt.JwtPayload;
  expect(Number(next.exp) - Number(issued.exp)).toBeGreaterThanOrEqual(86_400);
});

async function signIn(
  at = shop,
): Promise<{ accessToken: string; refreshToken: string; sessionKey: string }> {
  const { username } = await at.makeUser();
  return (await at.graphql(LOGIN, { username, password: PASSWORD })).body.data.login;
}

async function isSignedIn(credentials: RequestOptions): Promise<boolean> {
  return (await shop.rest('GET', '/users/me/', credentials)).status === 200;
}
