import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop();

/** Every known path, with one of its methods. */
const PATHS: [path: string, method: string][] = [
  ['/token', 'POST'],
  ['/login', 'POST'],
  ['/users/me/', 'GET'],
  ['/users/me/items/', 'GET'],
  ['/blog', 'GET'],
  ['/session/login', 'POST'],
  ['/session/logout', 'POST'],
  ['/api/v2/auth/login', 'GET'],
  ['/api/v1/shop/products', 'GET'],
  ['/api/v1/shop/product/1', 'GET'],
  ['/api/v1/shop/product/', 'POST'],
  ['/api/v2/shop/products', 'GET'],
  ['/api/users', 'GET'],
  ['/graphql', 'GET'],
  ['/livez', 'GET'],
  ['/readyz', 'GET'],
];

const EXPOSED =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Deprecation, Sunset';

// OPTIONS

test.each(['/graphql', '/livez', '/readyz'])(
  '4.5 OPTIONS %s has no body and no Content-Type',
  async (path) => {
    const { text, headers } = await shop.rest('OPTIONS', path);
    expect([text, headers.get('content-type')]).toEqual(['', null]);
  },
);

test.each([
  ['/users/me/', 'Authorization,X-SESSION-ID', 'Authorization, X-SESSION-ID'],
  ['/api/v2/auth/login', 'x-session-id', 'x-session-id'],
  ['/graphql', 'authorization,content-type', 'authorization'],
  [
    '/graphql',
    'apollographql-client-name,traceparent,x-request-id',
    'apollographql-client-name, traceparent, x-request-id',
  ],
  [
    '/api/v1/shop/product/',
    'idempotency-key, baggage, sentry-trace',
    'idempotency-key, baggage, sentry-trace',
  ],
  ['/livez', 'x-anything', 'x-anything'],
])(
  'Decisions, OPTIONS: a preflight of %s for %s allows %s beside Content-Type, and may be cached',
  async (path, requested, allowed) => {
    const answer = await preflight(path, requested);
    expect(answer.status).toBe(200);
    expect(answer.text).toBe('');
    expect(answer.headers.get('access-control-allow-headers')).toBe(`Content-Type, ${allowed}`);
    expect(answer.headers.get('access-control-max-age')).toBe('7200');
  },
);

test.each<[string, Record<string, string>]>([
  [
    'names no origin',
    { 'Access-Control-Request-Method': 'GET', 'Access-Control-Request-Headers': 'x-anything' },
  ],
  [
    'names no method',
    { Origin: 'https://client.example', 'Access-Control-Request-Headers': 'x-anything' },
  ],
])(
  '4.5 an OPTIONS that %s is no preflight, and gets exactly the three headers of the interface',
  async (_what, headers) => {
    const answer = await shop.rest('OPTIONS', '/users/me/', { headers });
    expect(crossOrigin(answer.headers)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-methods': 'GET, OPTIONS',
      'access-control-allow-headers': 'Content-Type',
    });
  },
);

test.each(['a b', 'x-a\u00e9', '(x)', ''])(
  'Decisions, OPTIONS: an invalid header name is not allowed: "%s"',
  async (requested) => {
    const answer = await preflight('/graphql', Buffer.from(requested).toString('latin1'));
    expect(answer.headers.get('access-control-allow-headers')).toBe('Content-Type');
  },
);

// Access-Control-Allow-Origin

test.each([
  [
    'JSON that does not parse',
    'POST',
    '/session/login',
    { body: '{', headers: { 'Content-Type': 'application/json' } },
    400,
  ],
  ['an unknown pk', 'GET', '/api/v1/shop/product/1', {}, 404],
  ['a path that cannot be decoded', 'GET', '/api/v1/shop/product/%zz', {}, 404],
  [
    'a body that is too large',
    'POST',
    '/session/login',
    { json: { username: 'x'.repeat(20_000) } },
    413,
  ],
  ['a wrong content type', 'POST', '/session/login', { form: { username: 'x' } }, 415],
  ['a wrong query', 'GET', '/api/v2/shop/products?page=0', {}, 422],
])(
  '4.5 the response to %s has Access-Control-Allow-Origin: * and names the headers a page may read',
  async (_what, method, path, request, status) => {
    const answer = await shop.rest(method, path, request);
    expect(answer.status).toBe(status);
    expect(crossOrigin(answer.headers)).toEqual({
      'access-control-allow-origin': '*',
      'access-control-expose-headers': EXPOSED,
    });
  },
);

// Unknown paths

test.each(['/assets', '/users', '/api/v1/shop/products/1', '/api/v1/shop/..%2fproducts'])(
  '4.5 the unknown path %s returns 404 as JSON, by every method',
  async (path) => {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await shop.rest(method, path);
      expect(answer.status).toBe(404);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(answer.body).toEqual({ detail: expect.any(String) });
    }
  },
);

// Trailing slashes

test.each(PATHS)('4.5 %s is served with and without a slash at its end', async (path, method) => {
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

test('4.5 HEAD returns the Content-Length of the GET response, in bytes', async () => {
  const { pk, name, barcode } = await shop.makeProduct({ name: 'Käse 🧀' });
  const head = await shop.rest('HEAD', `/api/v1/shop/product/${pk}`);
  expect(head.headers.get('content-length')).toBe(
    String(Buffer.byteLength(JSON.stringify({ pk, name, barcode, price: 9.99 }))),
  );
});

// {base_url}

describe('under BASE_PATH', () => {
  const based = new Shop({ BASE_PATH: '/shop' });
  beforeAll(() => based.start());
  afterAll(() => based.stop());

  test.each(PATHS)(
    '4.5 {base_url}%s is served, and 404 without {base_url}',
    async (path, method) => {
      await shop.makeProduct();
      const inside = await based.rest(method, path);
      const outside = await fetch(`http://127.0.0.1:${based.port}${path}`, { method });
      expect([404, 405]).not.toContain(inside.status);
      expect((await based.rest('OPTIONS', path)).headers.get('allow')).toContain(method);
      expect(outside.status).toBe(404);
    },
  );

  test.each(['GET', 'OPTIONS'])(
    '4.5 %s of a path that only begins like {base_url} returns 404',
    async (method) => {
      const answer = await fetch(`http://127.0.0.1:${based.port}/shopping/livez`, { method });
      expect(answer.status).toBe(404);
    },
  );
});

function preflight(path: string, requested: string) {
  return shop.rest('OPTIONS', path, {
    headers: {
      Origin: 'https://client.example',
      'Access-Control-Request-Method': 'GET',
      'Access-Control-Request-Headers': requested,
    },
  });
}

function crossOrigin(headers: Headers): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => name.startsWith('access-control-')));
}
