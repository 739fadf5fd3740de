import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { PASSWORD, PUBLIC_URL, Shop, useShop } from '../support/shop.ts';

const shop = useShop();

/** Every known path, with the methods that it has. */
const PATHS: [path: string, ...methods: string[]][] = [
  ['/token', 'POST'],
  ['/login', 'POST'],
  ['/users/me/', 'GET'],
  ['/users/me/items/', 'GET'],
  ['/blog', 'GET'],
  ['/session/login', 'POST'],
  ['/session/logout', 'POST'],
  ['/api/v2/auth/login', 'GET', 'POST'],
  ['/api/v1/shop/products', 'GET'],
  ['/api/v1/shop/product/1', 'GET'],
  ['/api/v1/shop/product/', 'POST'],
  ['/api/v2/shop/products', 'GET'],
  ['/api/users', 'GET'],
  ['/graphql', 'GET', 'POST'],
  ['/livez', 'GET'],
  ['/readyz', 'GET'],
];
const ALLOWED = PATHS.map(([path, ...methods]): [string, string] => [path, [...methods, 'OPTIONS'].join(', ')]);
const LACKED = PATHS.flatMap(([path, ...methods]) =>
  ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].filter((method) => !methods.includes(method)).map((method): [string, string] => [method, path]),
);
const GET_PATHS = PATHS.filter(([, ...methods]) => methods.includes('GET')).map(([path]) => path);
const POST_PATHS = PATHS.filter(([, ...methods]) => !methods.includes('GET')).map(([path]) => path);

// OPTIONS

test.each(ALLOWED)('4.5 OPTIONS %s answers 200, no body, exactly the three headers, and Allow: %s', async (path, allowed) => {
  const answer = await shop.rest('OPTIONS', path);
  expect(answer.status).toBe(200);
  expect(answer.text).toBe('');
  expect(answer.headers.get('content-type')).toBeNull();
  expect(crossOrigin(answer.headers)).toEqual({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': allowed,
    'access-control-allow-headers': 'Content-Type',
  });
  expect(answer.headers.get('allow')).toBe(allowed);
});

test.each(ALLOWED)('4.5 OPTIONS %s is the same with and without a slash at its end', async (path, allowed) => {
  const answer = await shop.rest('OPTIONS', path.endsWith('/') ? path.slice(0, -1) : `${path}/`);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('access-control-allow-methods')).toBe(allowed);
});

test('4.5 OPTIONS of an unknown path answers 404', async () => {
  const answer = await shop.rest('OPTIONS', '/api/v1/shop/nothing');
  expect(answer.status).toBe(404);
  expect(answer.body).toEqual({ detail: expect.any(String) });
});

test('4.5 OPTIONS answers an origin that asks for credentials with *, and never allows credentials', async () => {
  const headers = { Origin: 'https://evil.example', 'Access-Control-Request-Method': 'POST', Cookie: 'session_key=x' };
  const answer = await shop.rest('OPTIONS', '/api/v1/shop/product/', { headers });
  expect(crossOrigin(answer.headers)).toEqual({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'POST, OPTIONS',
    'access-control-allow-headers': 'Content-Type',
  });
});

test.each([
  ['/users/me/', 'authorization', 'Authorization'],
  ['/users/me/', 'x-session-id', 'X-SESSION-ID'],
  ['/users/me/', 'x-sessionid', 'X-SESSIONID'],
  ['/users/me/', 'Authorization,X-SESSION-ID', 'Authorization, X-SESSION-ID'],
  ['/users/me/items/', 'authorization', 'Authorization'],
  ['/blog', 'authorization', 'Authorization'],
  ['/api/users', 'authorization', 'Authorization'],
  ['/api/v2/auth/login', 'authorization', 'Authorization'],
  ['/api/v2/auth/login', 'x-session-id', 'X-SESSION-ID'],
  ['/api/v1/shop/product/', 'authorization, content-type, idempotency-key', 'Authorization, Idempotency-Key'],
  ['/graphql', 'authorization,content-type', 'Authorization'],
  ['/graphql', 'x-session-id', 'X-SESSION-ID'],
])('4.5 a preflight of %s that asks for %s gets %s beside Content-Type', async (path, asked, given) => {
  const answer = await preflight(path, asked);
  expect(answer.status).toBe(200);
  expect(answer.text).toBe('');
  expect(answer.headers.get('access-control-allow-headers')).toBe(`Content-Type, ${given}`);
});

test.each([
  ['/token', 'authorization, x-session-id, x-sessionid, idempotency-key, if-none-match'],
  ['/session/login', 'authorization, x-session-id, x-sessionid, idempotency-key, if-none-match'],
  ['/session/logout', 'authorization, x-session-id, x-sessionid, idempotency-key, if-none-match'],
  ['/users/me/', 'idempotency-key'],
  ['/api/users', 'idempotency-key'],
  ['/livez', 'authorization, x-session-id, x-sessionid, idempotency-key, if-none-match'],
  ['/api/v1/shop/product/', 'x-evil, cookie, *, x-forwarded-for'],
])('4.5 a preflight of %s that asks for %s, which it does not read, gets Content-Type', async (path, asked) => {
  const answer = await preflight(path, asked);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('access-control-allow-headers')).toBe('Content-Type');
});

// Access-Control-Allow-Origin

test.each([
  ['a success', 'GET', '/api/v1/shop/products', {}, 200],
  ['JSON that does not parse', 'POST', '/session/login', { body: '{', headers: { 'Content-Type': 'application/json' } }, 400],
  ['missing credentials', 'GET', '/users/me/', {}, 401],
  ['a wrong token', 'GET', '/users/me/', { token: 'x' }, 401],
  ['an unknown pk', 'GET', '/api/v1/shop/product/1', {}, 404],
  ['an unknown path', 'GET', '/nothing', {}, 404],
  ['a path that cannot be decoded', 'GET', '/api/v1/shop/product/%zz', {}, 404],
  ['a method that the path lacks', 'DELETE', '/blog', {}, 405],
  ['a body that is too large', 'POST', '/session/login', { json: { username: 'x'.repeat(20_000) } }, 413],
  ['a wrong content type', 'POST', '/session/login', { form: { username: 'x' } }, 415],
  ['a wrong query', 'GET', '/api/v2/shop/products?page=0', {}, 422],
  ['a GraphQL query that does not parse', 'POST', '/graphql', { json: { query: '{' } }, 400],
])('4.5 the answer to %s carries Access-Control-Allow-Origin: * and no other such header', async (_what, method, path, request, status) => {
  const answer = await shop.rest(method, path, request);
  expect(answer.status).toBe(status);
  expect(crossOrigin(answer.headers)).toEqual({ 'access-control-allow-origin': '*' });
});

// Methods that a path lacks

test.each(LACKED)('4.5 %s %s answers 405 with Allow', async (method, path) => {
  const answer = await shop.rest(method, path);
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe(new Map(ALLOWED).get(path));
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual({ [errorKey(path)]: `Method "${method}" not allowed.` });
});

test.each(ALLOWED)('4.5 TRACE %s answers 405 with Allow: %s, and no echo', async (path, allowed) => {
  const answer = await shop.raw(`TRACE ${path} HTTP/1.1\r\nHost: shop.example\r\nX-Secret: echo-me\r\nConnection: close\r\n\r\n`);
  const [head = '', body = ''] = answer.split('\r\n\r\n');
  expect(head).toMatch(/^HTTP\/1\.1 405 /);
  expect(head).toContain(`\r\nAllow: ${allowed}\r\n`);
  expect(JSON.parse(body)).toEqual({ [errorKey(path)]: 'Method "TRACE" not allowed.' });
  expect(answer).not.toContain('echo-me');
});

test('4.5 a method that the interface does not name answers 405, too', async () => {
  const answer = await shop.rest('PROPFIND', '/blog');
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('GET, OPTIONS');
  expect(answer.body).toEqual({ detail: 'Method "PROPFIND" not allowed.' });
});

// Unknown paths

test.each([
  '/assets',
  '/nothing',
  '/users',
  '/users/me/items/1',
  '/Token',
  '/api/v1/shop/products/1',
  '/api/v1/shop/product/1/2',
  '/api/v3/shop/products',
  '/session',
  '/%zz',
  '/api/v1/shop/..%2fproducts',
])('4.5 the unknown path %s answers 404 as JSON, by every method', async (path) => {
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    const answer = await shop.rest(method, path);
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body).toEqual({ detail: expect.any(String) });
  }
});

// Trailing slashes

test.each(PATHS)('4.5 %s is served with and without a slash at its end', async (path, method = '') => {
  await shop.makeProduct();
  const bare = path.replace(/\/$/, '');
  const token = shop.tokenOf(await shop.makeUser({ password: null, scopes: ['products:write'] }));
  const without = await shop.rest(method, bare, { token });
  const slashed = await shop.rest(method, `${bare}/`, { token });
  expect([404, 405]).not.toContain(without.status);
  expect(slashed.status).toBe(without.status);
  expect(slashed.body).toEqual(without.body);
});

test('4.5 a slash before the query makes no difference', async () => {
  await shop.makeProducts(3);
  const { body } = await shop.rest('GET', '/api/v2/shop/products?limit=1&offset=1');
  const slashed = await shop.rest('GET', '/api/v2/shop/products/?limit=1&offset=1');
  expect(slashed.status).toBe(200);
  expect(slashed.body).toEqual(body);
});

// HEAD

test.each(GET_PATHS.map((path) => (path === '/graphql' ? `${path}?query={__typename}` : path)))(
  '4.5 HEAD %s answers as GET, with the same headers and no body',
  async (path) => {
    const { username } = await shop.makeUser({ username: 'ann' });
    await shop.makeProduct();
    const asked = path === '/api/v2/auth/login' ? `${path}?username=${username}&password=${encodeURIComponent(PASSWORD)}` : path;
    const token = shop.tokenOf(await shop.makeUser({ password: null }));
    const request = { headers: { ...(asked === path && { Authorization: `Bearer ${token}` }), 'apollo-require-preflight': '1' } };
    const get = await shop.rest('GET', asked, request);
    const head = await shop.rest('HEAD', asked, request);
    expect(get.status).toBe(200);
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect(stable(head.headers)).toEqual(stable(get.headers));
  },
);

test('4.5 HEAD tells the Content-Length of what GET answers, in bytes', async () => {
  const { pk, name, barcode } = await shop.makeProduct({ name: 'Käse 🧀' });
  const head = await shop.rest('HEAD', `/api/v1/shop/product/${pk}`);
  expect(head.headers.get('content-length')).toBe(String(Buffer.byteLength(JSON.stringify({ pk, name, barcode, price: 9.99 }))));
});

test.each(['/users/me/', '/api/v1/shop/product/9', '/api/v2/shop/products?page=0', '/nothing'])(
  '4.5 HEAD %s is refused as GET, with the same headers and no body',
  async (path) => {
    const get = await shop.rest('GET', path);
    const head = await shop.rest('HEAD', path);
    expect(get.status).toBeGreaterThanOrEqual(400);
    expect(head.status).toBe(get.status);
    expect(head.text).toBe('');
    expect(stable(head.headers)).toEqual(stable(get.headers));
  },
);

test.each(POST_PATHS)('4.5 HEAD %s, which has no GET, answers 405 with Allow and no body', async (path) => {
  const answer = await shop.rest('HEAD', path);
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('POST, OPTIONS');
  expect(answer.text).toBe('');
});

// {base_url}

describe('under BASE_PATH', () => {
  const based = new Shop({ BASE_PATH: '/shop' });
  beforeAll(() => based.start());
  afterAll(() => based.stop());

  test.each(ALLOWED)('4.5 OPTIONS {base_url}%s answers 200', async (path, allowed) => {
    const answer = await based.rest('OPTIONS', path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('access-control-allow-methods')).toBe(allowed);
  });

  test.each(PATHS)('4.5 {base_url}%s is known, and not without {base_url}', async (path, method = '') => {
    await shop.makeProduct();
    const inside = await based.rest(method, path);
    const outside = await fetch(`http://127.0.0.1:${based.port}${path}`, { method });
    expect([404, 405]).not.toContain(inside.status);
    expect(outside.status).toBe(404);
  });

  test.each(['GET', 'OPTIONS'])('4.5 %s of a path that only begins like {base_url} answers 404', async (method) => {
    const answer = await fetch(`http://127.0.0.1:${based.port}/shopping/livez`, { method });
    expect(answer.status).toBe(404);
  });

  test('4.5 links and Location lead under {base_url}', async () => {
    await shop.makeProducts(11);
    const as = await shop.makeUser({ password: null, scopes: ['products:write'] });
    const page = await based.rest('GET', '/api/v2/shop/products');
    const made = await based.rest('POST', '/api/v1/shop/product/', { as, json: { name: 'Tray', barcode: '4006381333931', price: 1 } });
    expect(page.body.next).toBe(`${PUBLIC_URL}/shop/api/v2/shop/products?page=2`);
    expect(page.headers.get('link')).toBe(`<${PUBLIC_URL}/shop/api/v2/shop/products?page=2>; rel="next"`);
    expect(new URL(made.headers.get('location') ?? '', based.url).pathname).toBe('/shop/api/v1/shop/product/12');
  });
});

function preflight(path: string, asked: string) {
  return shop.rest('OPTIONS', path, {
    headers: { Origin: 'https://client.example', 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': asked },
  });
}

function crossOrigin(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}

/** Headers but those that differ from answer to answer, or tell how the body is sent. */
function stable(headers: Headers): Record<string, string> {
  const changing = new Set(['date', 'x-request-id', 'connection', 'keep-alive', 'transfer-encoding']);
  return Object.fromEntries([...headers].filter(([name]) => !changing.has(name)));
}

/** In the session router, errors stand under `data`. */
function errorKey(path: string): string {
  return /^\/(session|api\/v2\/auth)\//.test(path) ? 'data' : 'detail';
}
