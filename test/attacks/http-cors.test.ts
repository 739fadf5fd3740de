import { describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const shop = useShop();

/** Every path, with its methods in the order of the Allow header. */
const PATHS: Record<string, string> = {
  '/token': 'POST',
  '/login': 'POST',
  '/session/login': 'POST',
  '/session/logout': 'POST',
  '/api/v2/auth/login': 'GET, POST',
  '/users/me': 'GET',
  '/users/me/items': 'GET',
  '/blog': 'GET',
  '/api/users': 'GET',
  '/api/v1/shop/products': 'GET',
  '/api/v1/shop/product': 'POST',
  '/api/v1/shop/product/{pk}': 'GET',
  '/api/v2/shop/products': 'GET',
  '/graphql': 'GET, POST',
  '/livez': 'GET',
  '/readyz': 'GET',
};
const EVIL = 'https://evil.example';
const EXPOSED =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Deprecation, Sunset';

describe('OPTIONS', () => {
  test('H1 the paths of all features are listed here', () => {
    const endpoints = features.flatMap(({ routes }) => routes?.(shop.config) ?? []);
    const served = new Set(endpoints.map(({ path }) => path.replace(/\/$/, '')));
    expect([...served, '/graphql', '/livez', '/readyz'].toSorted()).toEqual(
      Object.keys(PATHS).toSorted(),
    );
  });

  test.each(Object.entries(PATHS))(
    'H1 OPTIONS %s is 200 with the three headers and "%s, OPTIONS", without a database query',
    async (path, methods) => {
      const target = path.replace('{pk}', '1');
      for (const form of [target, `${target}/`, `${target}?page=0&page=x`]) {
        const { answer, statements } = await recordStatements(() => shop.rest('OPTIONS', form));
        const { status, text, headers } = answer;
        expect([status, text]).toEqual([200, '']);
        expect([headers.get('Content-Length'), headers.get('Content-Type')]).toEqual(['0', null]);
        expect(crossOrigin(answer)).toEqual({
          ...preflightOf(methods),
          'access-control-allow-headers': 'Content-Type',
        });
        expect(answer.headers.get('Allow')).toBe(`${methods}, OPTIONS`);
        expect(statements).toEqual([]);
      }
    },
  );
});

describe('other origins', () => {
  test.each<[string, Record<string, string>]>([
    [
      'requests credentials',
      { 'Access-Control-Request-Headers': 'authorization, cookie', Cookie: 'session_key=x' },
    ],

    ['requests an unsupported method', { 'Access-Control-Request-Method': 'DELETE' }],

    [
      'requests 1,000 headers',
      {
        'Access-Control-Request-Headers': Array.from(
          { length: 1_000 },
          (_, at) => `x-${at}`,
        ).join(),
      },
    ],
  ])(
    'H2 a cross-origin preflight that %s gets * and no permission for credentials',
    async (_what, headers) => {
      for (const [path, methods] of Object.entries(PATHS)) {
        const answer = await shop.rest('OPTIONS', path.replace('{pk}', '1'), {
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
});

describe('unknown paths', () => {
  test.each(['/nothing', '/api/v1/shop/products/1', '/users/me/items/1', '*'])(
    'H3 OPTIONS of the unknown path %s is 404 as JSON, with the CORS origin but no list of methods',
    async (path) => {
      const answer = await shop.raw(
        `OPTIONS ${path} HTTP/1.1\r\nHost: shop\r\nOrigin: ${EVIL}\r\nConnection: close\r\n\r\n`,
      );
      expect(answer).toMatch(/^HTTP\/1\.1 404 .*\r\n\r\n\{"detail":"Not found"\}$/s);
      expect(answer).toContain('\r\nContent-Type: application/json; charset=utf-8\r\n');
      expect(answer).toContain('\r\nAccess-Control-Allow-Origin: *\r\n');
      expect(answer).not.toMatch(
        /\r\n(Allow|Access-Control-Allow-(Methods|Headers|Credentials)):/i,
      );
    },
  );
});

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
