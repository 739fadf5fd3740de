import { describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
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
const SIGNED_IN = ['/users/me/', '/users/me/items/', '/blog', '/api/users'];
const EVIL = 'https://evil.example';
const FORM_TYPE = { 'Content-Type': 'application/x-www-form-urlencoded' };
const EXPOSED =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Accept-Encoding, Deprecation, Sunset';

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

  test.each(Object.entries(PATHS))(
    'H1 OPTIONS %s ignores credentials, bodies and session keys',
    async (path, methods) => {
      const target = path.replace('{pk}', '1');
      const requests: RequestOptions[] = [
        { token: 'x' },
        { sessionKey: 'x', headers: { 'X-SESSIONID': 'y' } },
        { headers: { Authorization: 'Basic eDp5' } },
        { body: '{', headers: { 'Content-Type': 'application/json' } },
        { body: 'username=x&password=y', headers: FORM_TYPE },
      ];
      for (const request of requests) {
        const { answer, statements } = await recordStatements(() =>
          shop.rest('OPTIONS', target, request),
        );
        expect([answer.status, answer.text]).toEqual([200, '']);
        expect(crossOrigin(answer)).toEqual({
          ...preflightOf(methods),
          'access-control-allow-headers': 'Content-Type',
        });
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
    ['requests all headers', { 'Access-Control-Request-Headers': '*' }],
    [
      'requests headers of proxies',
      {
        'Access-Control-Request-Headers':
          'x-forwarded-for, x-forwarded-host, forwarded, host, origin',
      },
    ],
    ['requests access to a private network', { 'Access-Control-Request-Private-Network': 'true' }],
    ['requests an unsupported method', { 'Access-Control-Request-Method': 'DELETE' }],
    ['requests all methods', { 'Access-Control-Request-Method': '*' }],
    ['has the origin null', { Origin: 'null' }],
    ['has several origins', { Origin: `${EVIL} https://shop.example` }],
    ['has an origin that resembles ours', { Origin: 'https://shop.example.evil.example' }],
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
    ['GET', '/users/me/', {}, 401],
    ['GET', '/users/me/', { token: 'x' }, 401],
    ['POST', '/token', { form: { username: 'x', password: 'y' } }, 401],
    ['POST', '/session/login', { json: {} }, 422],
    ['POST', '/session/login', { body: '{', headers: { 'Content-Type': 'application/json' } }, 400],
    ['POST', '/session/login', { json: { username: 'x'.repeat(20_000) } }, 413],
    ['POST', '/session/login', { form: { username: 'x' } }, 415],
    ['POST', '/api/v1/shop/product/', { json: {} }, 401],
    ['DELETE', '/blog', {}, 405],
    ['GET', '/nothing', {}, 404],
    ['GET', '/api/v1/shop/product/1', {}, 404],
    ['GET', '/api/v1/shop/product/%zz', {}, 404],
    ['GET', '/api/v2/shop/products?page=0', {}, 422],
    ['POST', '/graphql', { json: { query: '{ __typename }' } }, 200],
    ['POST', '/graphql', { json: { query: '{' } }, 400],
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

  test.each(SIGNED_IN)(
    'H2 credentials in cookies or query parameters are ignored: GET %s',
    async (path) => {
      const user = await shop.makeUser({ username: 'ada' });
      const { body } = await shop.rest('POST', '/session/login', {
        json: { username: 'ada', password: PASSWORD },
      });
      const key = String(body.session_key);
      const token = shop.tokenOf(user);
      const cookie = {
        Cookie: `X-SESSION-ID=${key}; session_key=${key}; sessionid=${key}; access_token=${token}; Authorization=Bearer ${token}`,
      };
      for (const request of [{ headers: cookie }, { headers: { ...cookie, Origin: EVIL } }])
        expect(await rejection(path, request)).toEqual([401, 'Not authenticated']);
      const query = new URLSearchParams({
        access_token: token,
        token,
        session_key: key,
        'X-SESSION-ID': key,
      }).toString();
      // The list of users rejects unknown parameters, but checks credentials first.
      expect(await rejection(`${path}?${query}`, {})).toEqual([401, 'Not authenticated']);
      expect((await shop.rest('GET', path, { sessionKey: key })).status).toBe(200);
      expect((await shop.rest('GET', path, { token })).status).toBe(200);
    },
  );

  // Cross-site forms can send these three content types without a preflight, but no own headers.
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'H2 a cross-site form of the type %s creates nothing and ends no session',
    async (type) => {
      await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
      const { body } = await shop.rest('POST', '/session/login', {
        json: { username: 'ada', password: PASSWORD },
      });
      const key = String(body.session_key);
      const headers = {
        'Content-Type': type,
        Origin: EVIL,
        Cookie: `session_key=${key}; X-SESSION-ID=${key}`,
      };
      const product = JSON.stringify({ name: 'Pen', barcode: '4006381333931', price: 1 });
      const attempts: [path: string, body: string, status: number][] = [
        // Credentials are checked before the body.
        ['/api/v1/shop/product/', product, 401],
        ['/session/logout', JSON.stringify({ session_key: key }), 415],
        ['/api/v2/auth/login', JSON.stringify({ session_key: key }), 415],
        ['/session/login', JSON.stringify({ username: 'ada', password: PASSWORD }), 415],
        ['/graphql', JSON.stringify({ query: 'mutation { logoutEverywhere { ended } }' }), 415],
      ];
      for (const [path, sent, status] of attempts)
        expect([path, (await shop.rest('POST', path, { body: sent, headers })).status]).toEqual([
          path,
          status,
        ]);
      expect(await shop.sql('select * from product')).toEqual([]);
      expect((await shop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(200);
      expect(await shop.sql('select count(*)::int as count from session')).toEqual([{ count: 1 }]);
    },
  );
});

describe('unknown paths', () => {
  test.each([
    '/nothing',
    '/assets',
    '/users',
    '/api',
    '/api/v1/shop',
    '/api/v1/shop/products/1',
    '/api/v1/shop/..%2fproducts',
    '/session',
    '/graphql/x',
    '/livez/x',
    '/users/me/items/1',
    '/.well-known/x',
    '*',
  ])(
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

async function rejection(path: string, request: RequestOptions): Promise<[number, unknown]> {
  const { status, body } = await shop.rest('GET', path, request);
  return [status, body.detail];
}
