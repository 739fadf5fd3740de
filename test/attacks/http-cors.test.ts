import { expect, test } from '../support/jest.ts';
import { useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

/** Some paths, with their methods in the order of the Allow header. */
const PATHS: Record<string, string> = {
  '/api/v2/auth/login': 'GET, POST',
  '/api/v1/shop/product': 'POST',
  '/graphql': 'GET, POST',
  '/livez': 'GET',
};
const EVIL = 'https://evil.example';
const EXPOSED =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Deprecation, Sunset';

test.each<[string, Record<string, string>]>([
  [
    'requests credentials',
    { 'Access-Control-Request-Headers': 'authorization, cookie', Cookie: 'session_key=x' },
  ],

  ['requests an unsupported method', { 'Access-Control-Request-Method': 'DELETE' }],

  [
    'requests 1,000 headers',
    {
      'Access-Control-Request-Headers': Array.from({ length: 1_000 }, (_, at) => `x-${at}`).join(),
    },
  ],
])(
  'H2 a cross-origin preflight that %s gets * and no permission for credentials',
  async (_what, headers) => {
    for (const [path, methods] of Object.entries(PATHS)) {
      const answer = await shop.rest('OPTIONS', path, {
        headers: { Origin: EVIL, 'Access-Control-Request-Method': 'POST', ...headers },
      });
      expect(answer.status).toBe(200);
      const { 'access-control-allow-headers': allowed = '', ...others } = crossOrigin(answer);
      expect(others).toEqual({ ...preflightOf(methods), 'access-control-max-age': '7200' });
      expect(allowed).toMatch(/^Content-Type(, |$)/);
      expect(JSON.stringify([...answer.headers])).not.toContain('evil');
    }
  },
);

test.each<[string, string, RequestOptions, number]>([
  ['GET', '/api/v2/shop/products', {}, 200],

  ['GET', '/users/me/', { token: 'x' }, 401],
  ['POST', '/token', { form: { username: 'x', password: 'y' } }, 401],

  ['DELETE', '/blog', {}, 405],
  ['GET', '/nothing', {}, 404],

  ['POST', '/graphql', { json: { query: '{ __typename }' } }, 200],
])(
  'H2 cross-origin %s %s gets only * and the readable headers, whatever a browser adds',
  async (method, path, request, status) => {
    for (const origin of [EVIL, 'null', 'https://shop.example']) {
      const headers = {
        ...request.headers,
        Origin: origin,
        Cookie: 'session_key=x',
        'Sec-Fetch-Site': 'cross-site',
        'Sec-Fetch-Mode': 'cors',
      };
      const answer = await shop.rest(method, path, { ...request, headers });
      expect(answer.status).toBe(status);
      expect(crossOrigin(answer)).toEqual({
        'access-control-allow-origin': '*',
        'access-control-expose-headers': EXPOSED,
      });
      expect(answer.headers.get('Set-Cookie')).toBeNull();
    }
  },
);

function preflightOf(methods: string): Record<string, string> {
  return {
    'access-control-allow-origin': '*',
    'access-control-allow-methods': `${methods}, OPTIONS`,
  };
}

function crossOrigin({ headers }: Answer): Record<string, string> {
  // Vary may contain the credentials of callers, but not their origin.
  const isOfOrigins = ([name, value]: [string, string]) =>
    name.startsWith('access-control-') || (name === 'vary' && /origin|\*/i.test(value));
  return Object.fromEntries([...headers].filter(isOfOrigins));
}
