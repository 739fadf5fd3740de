import { expect, test } from '../support/jest.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PROBLEM = { Accept: 'application/problem+json' };

/** One request for each kind of error, and its problem document. */
const PROBLEMS: [string, () => Promise<Answer>, object][] = [
  [
    'wrong username or password',
    () =>
      shop.rest('POST', '/token', {
        form: { username: 'nobody', password: 'wrong' },
        headers: PROBLEM,
      }),
    {
      title: 'Unauthorized',
      status: 401,
      detail: 'Incorrect username or password',
      code: 'INVALID_CREDENTIALS',
    },
  ],
  [
    'an invalid token',
    () => shop.rest('GET', '/users/me/', { token: 'garbage', headers: PROBLEM }),
    {
      title: 'Unauthorized',
      status: 401,
      detail: 'Could not validate credentials',
      code: 'INVALID_TOKEN',
    },
  ],
  [
    'no credentials',
    () => shop.rest('GET', '/users/me/', { headers: PROBLEM }),
    { title: 'Unauthorized', status: 401, detail: 'Not authenticated', code: 'NOT_AUTHENTICATED' },
  ],
  [
    'a disabled user',
    async () =>
      shop.rest('GET', '/users/me/', {
        as: await shop.makeUser({ disabled: true }),
        headers: PROBLEM,
      }),
    { title: 'Bad Request', status: 400, detail: 'Inactive user', code: 'INACTIVE_USER' },
  ],
  [
    'wrong credentials at the session login',
    () =>
      shop.rest('POST', '/session/login', {
        json: { username: 'nobody', password: 'wrong' },
        headers: PROBLEM,
      }),
    {
      title: 'Unauthorized',
      status: 401,
      detail: 'Incorrect login and/or password',
      code: 'INVALID_CREDENTIALS',
    },
  ],
  [
    'an unknown session key at logout',
    () =>
      shop.rest('POST', '/session/logout', { json: { session_key: 'unknown' }, headers: PROBLEM }),
    {
      title: 'Unauthorized',
      status: 401,
      detail: 'Invalid session key',
      code: 'INVALID_SESSION_KEY',
    },
  ],
  [
    'an unsupported method',
    () => shop.rest('GET', '/login', { headers: PROBLEM }),
    {
      title: 'Method Not Allowed',
      status: 405,
      detail: 'Method "GET" not allowed.',
      code: 'METHOD_NOT_ALLOWED',
    },
  ],
  [
    'an unknown path',
    () => shop.rest('GET', '/nowhere', { headers: PROBLEM }),
    { title: 'Not Found', status: 404, detail: expect.any(String), code: 'NOT_FOUND' },
  ],
  [
    'missing fields',
    () => shop.rest('POST', '/session/logout', { json: {}, headers: PROBLEM }),
    {
      title: 'Unprocessable Entity',
      status: 422,
      detail: expect.any(String),
      code: 'BAD_USER_INPUT',
      errors: [{ field: 'session_key', type: 'missing', message: 'Field required' }],
    },
  ],
];

test.each(PROBLEMS)(
  '7 %s, to a client that accepts application/problem+json: RFC 9457',
  async (_what, ask, problem) => {
    const { status, body, headers } = await ask();
    expect(headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
    expect(body).toEqual({ type: 'about:blank', ...problem });
    expect(body.status).toBe(status);
  },
);

test('7 a problem keeps the header WWW-Authenticate: Bearer', async () => {
  const { headers } = await shop.rest('GET', '/users/me/', { headers: PROBLEM });
  expect(headers.get('www-authenticate')).toBe('Bearer');
});

test.each([
  'application/problem+json, application/json',
  'application/json, application/problem+json',
  'text/html, application/problem+json;q=0.9',
])('7 Accept: %s gets application/problem+json', async (accept) => {
  const { headers } = await shop.rest('GET', '/users/me/', { headers: { Accept: accept } });
  expect(headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
});

test.each(['*/*', 'application/*', 'application/json', 'text/html'])(
  '7 Accept: %s gets application/json',
  async (accept) => {
    const { headers, body } = await shop.rest('GET', '/users/me/', { headers: { Accept: accept } });
    expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
    expect(body).toEqual({ detail: 'Not authenticated' });
  },
);
