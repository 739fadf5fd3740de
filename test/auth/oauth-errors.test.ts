import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

// RFC 6749, 5.2: an OAuth 2.0 client takes any response without `error` for a token.

const PATHS = ['/token', '/login'];
const WRONG = 'Incorrect username or password';
const UNREADABLE = 'Could not validate credentials';

const shop = useShop();
const throttled = useShop({ LOGIN_FAILURES_PER_ACCOUNT_PER_10_MINUTES: '1' });

type Form = Record<string, string>;

describe.each(PATHS)('POST %s with grant_type', (path) => {
  test.each<[string, Form, number, string, string]>([
    [
      'a wrong password',
      { grant_type: 'password', username: 'alice', password: 'x' },
      401,
      'invalid_grant',
      WRONG,
    ],
    [
      'a disabled user',
      { grant_type: 'password', username: 'zoe', password: PASSWORD },
      400,
      'invalid_grant',
      'Inactive user',
    ],
    [
      'an invalid refresh token',
      { grant_type: 'refresh_token', refresh_token: 'x' },
      401,
      'invalid_grant',
      UNREADABLE,
    ],
  ])('%s gets the error beside detail', async (_what, form, status, error, detail) => {
    await makeUsers();
    const answer = await shop.rest('POST', path, { form });
    expect([answer.status, answer.body]).toEqual([
      status,
      { detail, error, error_description: detail },
    ]);
    expect(answer.headers.get('WWW-Authenticate')).toBe(status === 401 ? 'Bearer' : null);
    expect(answer.headers.get('Cache-Control')).toBe('no-store');
  });

  test.each<[string, Form, string, string]>([
    ['no username', { grant_type: 'password', password: 'x' }, 'invalid_request', 'username'],
    ['no refresh_token', { grant_type: 'refresh_token' }, 'invalid_request', 'refresh_token'],
    [
      'an unknown grant_type',
      { grant_type: 'client_credentials' },
      'unsupported_grant_type',
      'grant_type',
    ],
  ])('%s is 422, and gets the error beside detail', async (_what, form, error, field) => {
    const answer = await shop.rest('POST', path, { form });
    const type: unknown = error === 'invalid_request' ? 'missing' : expect.any(String);
    expect([answer.status, answer.body]).toEqual([
      422,
      {
        detail: [{ type, loc: ['body', field], msg: expect.any(String) }],
        error,
        error_description: expect.stringMatching(new RegExp(`^${field}: [ !#-[\\]-~]+$`)),
      },
    ]);
  });

  test('a parameter that is sent twice is invalid_request', async () => {
    for (const twice of [
      'grant_type=password&grant_type=password',
      'grant_type=password&scope=a&scope=b',
    ]) {
      const answer = await sent(path, `username=alice&password=x&${twice}`);
      expect([answer.status, answer.body.error]).toEqual([422, 'invalid_request']);
    }
  });

  test('too many failures are temporarily_unavailable', async () => {
    const form = { grant_type: 'password', username: 'alice', password: 'x' };
    await throttled.rest('POST', path, { form });
    const answer = await throttled.rest('POST', path, { form });
    expect([answer.status, answer.headers.has('Retry-After')]).toEqual([429, true]);
    expect(answer.body).toEqual({
      detail: expect.any(String),
      error: 'temporarily_unavailable',
      error_description: answer.body.detail,
    });
  });

  test('a client that accepts problem details gets both there', async () => {
    const form = { grant_type: 'refresh_token', refresh_token: 'x' };
    const answer = await shop.rest('POST', path, {
      form,
      headers: { Accept: 'application/problem+json' },
    });
    expect(answer.body).toMatchObject({
      status: 401,
      code: 'INVALID_TOKEN',
      error: 'invalid_grant',
      error_description: UNREADABLE,
    });
  });
});

test.each(PATHS)('POST %s with an empty grant_type returns exactly detail', async (path) => {
  await makeUsers();
  const form = { username: 'alice', password: 'x', grant_type: '' };
  const wrong = await shop.rest('POST', path, { form });
  expect([wrong.status, wrong.text]).toEqual([401, `{"detail":"${WRONG}"}`]);
});

async function makeUsers(): Promise<void> {
  await shop.makeUser({ username: 'alice' });
  await shop.makeUser({ username: 'zoe', disabled: true });
}

function sent(path: string, body: string): Promise<Answer> {
  return shop.rest('POST', path, {
    body,
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
  });
}
