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

// OPTIONS

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
  ['/api/v2/shop/products', 'if-none-match', 'if-none-match'],
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
