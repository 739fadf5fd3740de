import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const PROBLEM = { Accept: 'application/problem+json' };

test.each(['/token', '/login'])('7 a wrong username or password at POST %s: 401, detail, WWW-Authenticate: Bearer', async (path) => {
  const answer = await shop.rest('POST', path, { form: { username: 'nobody', password: 'wrong' } });
  expect(said(answer)).toEqual({ status: 401, body: { detail: 'Incorrect username or password' }, challenge: 'Bearer' });
});

test('7 an invalid token: 401, detail, WWW-Authenticate: Bearer', async () => {
  expect(said(await shop.rest('GET', '/users/me/', { token: 'garbage' }))).toEqual({
    status: 401,
    body: { detail: 'Could not validate credentials' },
    challenge: 'Bearer error="invalid_token"',
  });
});

test('7 a disabled user: 400, detail', async () => {
  expect(said(await shop.rest('GET', '/users/me/', { as: await shop.makeUser({ disabled: true }) }))).toEqual({
    status: 400,
    body: { detail: 'Inactive user' },
    challenge: null,
  });
});

test('7 wrong credentials at the session login: 401, data', async () => {
  const { status, body } = await shop.rest('POST', '/session/login', { json: { username: 'nobody', password: 'wrong' } });
  expect({ status, body }).toEqual({ status: 401, body: { data: 'Incorrect login and/or password' } });
});

test('7 an unknown session key at logout: 401, data', async () => {
  const { status, body } = await shop.rest('POST', '/session/logout', { json: { session_key: 'unknown' } });
  expect({ status, body }).toEqual({ status: 401, body: { data: 'Invalid session key' } });
});

test('7 no credentials where one is needed: 401, detail, WWW-Authenticate: Bearer', async () => {
  expect(said(await shop.rest('GET', '/blog'))).toEqual({ status: 401, body: { detail: 'Not authenticated' }, challenge: 'Bearer' });
});

test('7 credentials without the scope: 403, detail names the scope', async () => {
  const as = await shop.makeUser({ scopes: ['users:read', 'blog:write'] });
  const { status, body } = await shop.rest('POST', '/api/v1/shop/product/', { as, json: product() });
  expect({ status, body }).toEqual({ status: 403, body: { detail: expect.stringContaining('products:write') } });
});

test.each([
  ['GET', '/login', 'POST, OPTIONS'],
  ['GET', '/token', 'POST, OPTIONS'],
  ['DELETE', '/users/me/', 'GET, OPTIONS'],
  ['POST', '/blog', 'GET, OPTIONS'],
  ['PUT', '/api/v1/shop/products', 'GET, OPTIONS'],
  ['PATCH', '/api/v1/shop/product/1', 'GET, OPTIONS'],
])('7 %s %s, which the path lacks: 405, detail, Allow', async (method, path, allow) => {
  const { status, body, headers } = await shop.rest(method, path);
  expect({ status, body }).toEqual({ status: 405, body: { detail: `Method "${method}" not allowed.` } });
  expect(headers.get('allow')).toBe(allow);
});

test.each(['/session/login', '/session/logout'])('7 GET %s, which the session router lacks: 405, data, Allow', async (path) => {
  const { status, body, headers } = await shop.rest('GET', path);
  expect({ status, body }).toEqual({ status: 405, body: { data: 'Method "GET" not allowed.' } });
  expect(headers.get('allow')).toBe('POST, OPTIONS');
});

test.each(['/nowhere', '/users', '/api/v3/shop/products', '/%zz', '/users/me/items/1'])(
  '7 the unknown path %s: 404, detail',
  async (path) => {
    const { status, body } = await shop.rest('GET', path);
    expect({ status, body }).toEqual({ status: 404, body: { detail: expect.any(String) } });
  },
);

test.each(['{"username":', '{"username":"a",}', '{"a":1 /* b */}', '{"a":NaN}', 'username=a'])(
  '7 %j, which is no JSON: 400, data',
  async (sent) => {
    const { status, body } = await shop.rest('POST', '/session/login', { body: sent, headers: { 'Content-Type': 'application/json' } });
    expect({ status, body }).toEqual({ status: 400, body: { data: expect.any(String) } });
  },
);

test('7 what is no JSON: 400, detail', async () => {
  const answer = await addProduct({ body: '{"name":', headers: { 'Content-Type': 'application/json' } });
  expect(plain(answer)).toEqual({ status: 400, body: { detail: expect.any(String) } });
});

test.each([
  'text/plain',
  'application/xml',
  'application/vnd.api+json',
  'application/json; charset=latin1',
  'application/json; charset=utf-16',
])('7 the content type %s: 415, detail', async (type) => {
  const answer = await addProduct({ body: JSON.stringify(product()), headers: { 'Content-Type': type } });
  expect(plain(answer)).toEqual({ status: 415, body: { detail: expect.any(String) } });
});

test('7 a body without a content type: 415, detail', async () => {
  const answer = await addProduct({ body: new TextEncoder().encode(JSON.stringify(product())) });
  expect(plain(answer)).toEqual({ status: 415, body: { detail: expect.any(String) } });
});

test('7 a body that is too large: 413, detail', async () => {
  const answer = await addProduct({ json: { ...product(), filler: 'x'.repeat(20_000) } });
  expect(plain(answer)).toEqual({ status: 413, body: { detail: expect.any(String) } });
});

test('7 a body that is too large in the session router: 413, data', async () => {
  const { status, body } = await shop.rest('POST', '/session/logout', { json: { session_key: 'x'.repeat(20_000) } });
  expect({ status, body }).toEqual({ status: 413, body: { data: expect.any(String) } });
});

test('7 fields that are missing: 422, detail lists each', async () => {
  expect(plain(await addProduct({ json: {} }))).toEqual({
    status: 422,
    body: {
      detail: [
        { type: 'missing', loc: ['body', 'name'], msg: 'Field required' },
        { type: 'missing', loc: ['body', 'barcode'], msg: 'Field required' },
        { type: 'missing', loc: ['body', 'price'], msg: 'Field required' },
      ],
    },
  });
});

test('7 a field that is invalid: 422, detail names it and does not echo it', async () => {
  const answer = await addProduct({ json: { ...product(), price: 'a price of 1234567' } });
  expect(plain(answer)).toEqual({
    status: 422,
    body: { detail: [{ type: expect.any(String), loc: ['body', 'price'], msg: expect.any(String) }] },
  });
  expect(answer.text).not.toContain('1234567');
});

test('7 a query parameter that is invalid: 422, detail says that it stands in the query', async () => {
  const { status, body } = await shop.rest('GET', '/api/v2/shop/products?page=x');
  expect({ status, body }).toEqual({
    status: 422,
    body: { detail: [{ type: expect.any(String), loc: ['query', 'page'], msg: expect.any(String) }] },
  });
});

test.each(['[]', 'null', '1', '"text"'])('7 the JSON body %s, which is no object, is the fault of the client', async (sent) => {
  const { status, body } = await addProduct({ body: sent, headers: { 'Content-Type': 'application/json' } });
  expect([400, 422]).toContain(status);
  expect(body).toEqual({ detail: expect.anything() });
});

test('7 unknown fields are ignored and never stored', async () => {
  const { username } = await shop.makeUser();
  const json = { username, password: PASSWORD, hashed_password: 'x', disabled: true, scopes: ['users:read'] };
  expect(await shop.rest('POST', '/session/login', { json })).toMatchObject({ status: 200 });
  expect(await shop.sql('select disabled, scopes from "user"')).toEqual([{ disabled: false, scopes: [] }]);
});

/** One request for each kind of error, and what a problem of it says. */
const PROBLEMS: [string, () => Promise<Answer>, object][] = [
  [
    'wrong username or password',
    () => shop.rest('POST', '/token', { form: { username: 'nobody', password: 'wrong' }, headers: PROBLEM }),
    { title: 'Unauthorized', status: 401, detail: 'Incorrect username or password', code: 'INVALID_CREDENTIALS' },
  ],
  [
    'an invalid token',
    () => shop.rest('GET', '/users/me/', { token: 'garbage', headers: PROBLEM }),
    { title: 'Unauthorized', status: 401, detail: 'Could not validate credentials', code: 'INVALID_TOKEN' },
  ],
  [
    'no credentials',
    () => shop.rest('GET', '/users/me/', { headers: PROBLEM }),
    { title: 'Unauthorized', status: 401, detail: 'Not authenticated', code: 'NOT_AUTHENTICATED' },
  ],
  [
    'a disabled user',
    async () => shop.rest('GET', '/users/me/', { as: await shop.makeUser({ disabled: true }), headers: PROBLEM }),
    { title: 'Bad Request', status: 400, detail: 'Inactive user', code: 'INACTIVE_USER' },
  ],
  [
    'wrong credentials at the session login',
    () => shop.rest('POST', '/session/login', { json: { username: 'nobody', password: 'wrong' }, headers: PROBLEM }),
    { title: 'Unauthorized', status: 401, detail: 'Incorrect login and/or password', code: 'INVALID_CREDENTIALS' },
  ],
  [
    'an unknown session key at logout',
    () => shop.rest('POST', '/session/logout', { json: { session_key: 'unknown' }, headers: PROBLEM }),
    { title: 'Unauthorized', status: 401, detail: 'Invalid session key', code: 'INVALID_SESSION_KEY' },
  ],
  [
    'a method that the path lacks',
    () => shop.rest('GET', '/login', { headers: PROBLEM }),
    { title: 'Method Not Allowed', status: 405, detail: 'Method "GET" not allowed.', code: 'METHOD_NOT_ALLOWED' },
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

test.each(PROBLEMS)('7 %s, to a client that accepts application/problem+json: RFC 9457', async (_what, ask, problem) => {
  const { status, body, headers } = await ask();
  expect(headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
  expect(body).toEqual({ type: 'about:blank', ...problem });
  expect(body.status).toBe(status);
});

test('7 a problem keeps the header WWW-Authenticate: Bearer', async () => {
  const { headers } = await shop.rest('GET', '/users/me/', { headers: PROBLEM });
  expect(headers.get('www-authenticate')).toBe('Bearer');
});

test.each([
  'application/problem+json, application/json',
  'application/json, application/problem+json',
  'text/html, application/problem+json;q=0.9',
])('7 Accept: %s names application/problem+json', async (accept) => {
  const { headers } = await shop.rest('GET', '/users/me/', { headers: { Accept: accept } });
  expect(headers.get('content-type')).toMatch(/^application\/problem\+json(;|$)/);
});

test.each(['*/*', 'application/*', 'application/json', 'text/html'])('7 Accept: %s gets application/json', async (accept) => {
  const { headers, body } = await shop.rest('GET', '/users/me/', { headers: { Accept: accept } });
  expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
  expect(body).toEqual({ detail: 'Not authenticated' });
});

test('7 an error of the session router is application/json', async () => {
  const { headers } = await shop.rest('POST', '/session/logout', { json: { session_key: 'unknown' } });
  expect(headers.get('content-type')).toMatch(/^application\/json(;|$)/);
});

test('7 every error may be read by a page of any origin', async () => {
  const answers = [
    await shop.rest('GET', '/users/me/'),
    await shop.rest('GET', '/login'),
    await shop.rest('GET', '/nowhere'),
    await shop.rest('POST', '/session/logout', { json: {} }),
  ];
  expect(answers.map(({ headers }) => headers.get('access-control-allow-origin'))).toEqual(['*', '*', '*', '*']);
});

function said({ status, body, headers }: Answer) {
  return { status, body, challenge: headers.get('www-authenticate') };
}

function plain({ status, body }: Answer) {
  return { status, body };
}

function product() {
  return { name: 'Tea', barcode: shop.newBarcode(), price: 1 };
}

async function addProduct(request: RequestOptions): Promise<Answer> {
  return shop.rest('POST', '/api/v1/shop/product/', { as: await shop.makeUser({ scopes: ['products:write'] }), ...request });
}
