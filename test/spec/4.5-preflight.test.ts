import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop();

/** Every known path, with one of its methods. */
const PATHS: [path: string, method: string][] = [
  ['/users/me/', 'GET'],
  ['/session/login', 'POST'],
  ['/api/v1/shop/product/1', 'GET'],
  ['/api/v2/shop/products', 'GET'],
  ['/graphql', 'GET'],
  ['/livez', 'GET'],
];

// OPTIONS

test.each([
  ['/users/me/', 'Authorization,X-SESSION-ID', 'Authorization, X-SESSION-ID'],
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

test('Decisions, OPTIONS: a preflight that names no header is allowed the content type', async () => {
  const answer = await preflight('/graphql', '');
  expect(answer.headers.get('access-control-allow-headers')).toBe('Content-Type');
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
