import { STATUS_CODES } from 'node:http';
import { expect, test } from '../support/jest.ts';
import { useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const PROBLEM = { Accept: 'application/problem+json' };
const WRONG = { username: 'nobody', password: 'wrong' };
const ask = (method: string, path: string, request: RequestOptions = {}) =>
  shop.rest(method, path, { ...request, headers: PROBLEM });

/** One request for each kind of error, and its problem document. */
const PROBLEMS: [
  what: string,
  ask: () => Promise<Answer>,
  status: number,
  detail: unknown,
  code: string,
  errors?: object[],
][] = [
  [
    'wrong username or password',
    () => ask('POST', '/token', { form: WRONG }),
    401,
    'Incorrect username or password',
    'INVALID_CREDENTIALS',
  ],
  [
    'an invalid token',
    () => ask('GET', '/users/me/', { token: 'garbage' }),
    401,
    'Could not validate credentials',
    'INVALID_TOKEN',
  ],
  ['no credentials', () => ask('GET', '/users/me/'), 401, 'Not authenticated', 'NOT_AUTHENTICATED'],
  [
    'a disabled user',
    async () => ask('GET', '/users/me/', { as: await shop.makeUser({ disabled: true }) }),
    400,
    'Inactive user',
    'INACTIVE_USER',
  ],
  [
    'wrong credentials at the session login',
    () => ask('POST', '/session/login', { json: WRONG }),
    401,
    'Incorrect login and/or password',
    'INVALID_CREDENTIALS',
  ],
  [
    'an unknown session key at logout',
    () => ask('POST', '/session/logout', { json: { session_key: 'unknown' } }),
    401,
    'Invalid session key',
    'INVALID_SESSION_KEY',
  ],
  [
    'an unsupported method',
    () => ask('GET', '/login'),
    405,
    'Method "GET" not allowed.',
    'METHOD_NOT_ALLOWED',
  ],
  ['an unknown path', () => ask('GET', '/nowhere'), 404, expect.any(String), 'NOT_FOUND'],
  [
    'missing fields',
    () => ask('POST', '/session/logout', { json: {} }),
    422,
    expect.any(String),
    'BAD_USER_INPUT',
    [{ field: 'session_key', type: 'missing', message: 'Field required' }],
  ],
];

test.each(PROBLEMS)(
  '7 %s, to a client that accepts application/problem+json: RFC 9457',
  async (_what, send, status, detail, code, errors) => {
    const answer = await send();
    expect(answer.headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
    const title = STATUS_CODES[status];
    expect([answer.status, answer.body]).toEqual([
      status,
      { type: 'about:blank', title, status, detail, code, errors },
    ]);
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
