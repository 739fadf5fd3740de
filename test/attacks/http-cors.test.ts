import { describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import { LOGIN_DOORS } from '../support/logins.ts';
import { PASSWORD, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { counted } from '../support/statements.ts';

const shop = useShop();

/** Every path there is, with its methods in the interface's order. */
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

describe('OPTIONS', () => {
  test('H1 no path of the features is left out here', () => {
    const rows = features.flatMap(({ routes }) => routes?.(shop.config) ?? []);
    const served = new Set(rows.map(({ path }) => path.replace(/\/$/, '')));
    expect([...served, '/graphql', '/livez', '/readyz'].toSorted()).toEqual(Object.keys(PATHS).toSorted());
  });

  test.each(Object.entries(PATHS))(
    'H1 OPTIONS %s answers 200, the three headers with "%s, OPTIONS", and asks no database',
    async (path, methods) => {
      const asked = path.replace('{pk}', '1');
      for (const form of [asked, `${asked}/`, `${asked}?page=0&page=x`]) {
        const { answer, statements } = await counted(() => shop.rest('OPTIONS', form));
        expect([answer.status, answer.text, answer.headers.get('Content-Length')]).toEqual([200, '', '0']);
        expect(crossOrigin(answer)).toEqual({ ...preflightOf(methods), 'access-control-allow-headers': 'Content-Type' });
        expect(answer.headers.get('Allow')).toBe(`${methods}, OPTIONS`);
        expect(statements).toEqual([]);
      }
    },
  );

  test.each(Object.entries(PATHS))(
    'H1 what comes with OPTIONS %s is not looked at: credentials, a body, a session',
    async (path, methods) => {
      const asked = path.replace('{pk}', '1');
      const requests: RequestOptions[] = [
        { token: 'x' },
        { sessionKey: 'x', headers: { 'X-SESSIONID': 'y' } },
        { headers: { Authorization: 'Basic eDp5' } },
        { body: '{', headers: { 'Content-Type': 'application/json' } },
        { body: 'username=x&password=y', headers: FORM_TYPE },
      ];
      for (const request of requests) {
        const { answer, statements } = await counted(() => shop.rest('OPTIONS', asked, request));
        expect([answer.status, answer.text]).toEqual([200, '']);
        expect(crossOrigin(answer)).toEqual({ ...preflightOf(methods), 'access-control-allow-headers': 'Content-Type' });
        expect(statements).toEqual([]);
      }
    },
  );
});

describe('other origins', () => {
  test.each<[string, Record<string, string>]>([
    ['asks for credentials', { 'Access-Control-Request-Headers': 'authorization, cookie', Cookie: 'session_key=x' }],
    ['asks for all headers', { 'Access-Control-Request-Headers': '*' }],
    ['asks for headers of proxies', { 'Access-Control-Request-Headers': 'x-forwarded-for, x-forwarded-host, forwarded, host, origin' }],
    ['asks to be let into a private network', { 'Access-Control-Request-Private-Network': 'true' }],
    ['asks for a method there is none of', { 'Access-Control-Request-Method': 'DELETE' }],
    ['asks for all methods', { 'Access-Control-Request-Method': '*' }],
    ['has no origin to name', { Origin: 'null' }],
    ['names several origins', { Origin: `${EVIL} https://shop.example` }],
    ['names an origin that looks like ours', { Origin: 'https://shop.example.evil.example' }],
    ['asks for a great many headers', { 'Access-Control-Request-Headers': Array.from({ length: 1_000 }, (_, at) => `x-${at}`).join() }],
  ])('H2 a preflight from elsewhere that %s gets * and no leave for credentials', async (_what, headers) => {
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
  });

  test.each<[string, string, RequestOptions, number]>([
    ['GET', '/api/v2/shop/products', {}, 200],
    ['GET', '/users/me/', {}, 401],
    ['GET', '/users/me/', { token: 'x' }, 401],
    ['POST', '/token', { form: { username: 'x', password: 'y' } }, 401],
    ['POST', '/session/login', { json: {} }, 422],
    ['POST', '/api/v1/shop/product/', { json: {} }, 401],
    ['DELETE', '/blog', {}, 405],
    ['GET', '/nothing', {}, 404],
    ['POST', '/graphql', { json: { query: '{ __typename }' } }, 200],
    ['POST', '/graphql', { json: { query: '{' } }, 400],
  ])('H2 %s %s from elsewhere gets * alone, with whatever credentials a browser would add', async (method, path, request, status) => {
    for (const origin of [EVIL, 'null', 'https://shop.example']) {
      const headers = { Origin: origin, Cookie: 'session_key=x', 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'cors' };
      const answer = await shop.rest(method, path, { ...request, headers });
      expect(answer.status).toBe(status);
      expect(crossOrigin(answer)).toEqual({ 'access-control-allow-origin': '*', 'access-control-expose-headers': expect.any(String) });
      expect(answer.headers.get('Set-Cookie')).toBeNull();
    }
  });

  test('H2 no login sets a cookie, so that no browser holds credentials that it would send by itself', async () => {
    const { username } = await shop.makeUser({ username: 'ada' });
    const answers = await Promise.all(LOGIN_DOORS.map(([, enter]) => enter(shop, username, PASSWORD)));
    for (const { status, headers } of answers) {
      expect([status, headers.get('Set-Cookie')]).toEqual([200, null]);
      expect(headers.get('Access-Control-Allow-Credentials')).toBeNull();
    }
  });

  test.each(SIGNED_IN)('H2 a cookie, a query or a body is no place for credentials: GET %s', async (path) => {
    const user = await shop.makeUser({ username: 'ada' });
    const { body } = await shop.rest('POST', '/session/login', { json: { username: 'ada', password: PASSWORD } });
    const key = String(body.session_key);
    const token = shop.tokenOf(user);
    const cookie = {
      Cookie: `X-SESSION-ID=${key}; session_key=${key}; sessionid=${key}; access_token=${token}; Authorization=Bearer ${token}`,
    };
    for (const request of [{ headers: cookie }, { headers: { ...cookie, Origin: EVIL } }])
      expect(await refusal(path, request)).toEqual([401, 'Not authenticated']);
    const query = new URLSearchParams({ access_token: token, token, session_key: key, 'X-SESSION-ID': key }).toString();
    // The list of users takes no parameters that it does not know, but first asks who is there.
    expect(await refusal(`${path}?${query}`, {})).toEqual([401, 'Not authenticated']);
    expect((await shop.rest('GET', path, { sessionKey: key })).status).toBe(200);
    expect((await shop.rest('GET', path, { token })).status).toBe(200);
  });

  // What a form on another site can send without asking: these three content types, and no header of its own.
  test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
    'H2 a form of the type %s on another site creates nothing and ends nothing',
    async (type) => {
      await shop.makeUser({ username: 'ada', scopes: ['products:write'] });
      const { body } = await shop.rest('POST', '/session/login', { json: { username: 'ada', password: PASSWORD } });
      const key = String(body.session_key);
      const headers = { 'Content-Type': type, Origin: EVIL, Cookie: `session_key=${key}; X-SESSION-ID=${key}` };
      const product = JSON.stringify({ name: 'Pen', barcode: '4006381333931', price: 1 });
      const attempts: [path: string, body: string, status: number][] = [
        // Who calls is asked before what is sent.
        ['/api/v1/shop/product/', product, 401],
        ['/session/logout', JSON.stringify({ session_key: key }), 415],
        ['/api/v2/auth/login', JSON.stringify({ session_key: key }), 415],
        ['/session/login', JSON.stringify({ username: 'ada', password: PASSWORD }), 415],
        ['/graphql', JSON.stringify({ query: 'mutation { logoutEverywhere { ended } }' }), 415],
      ];
      for (const [path, sent, status] of attempts)
        expect([path, (await shop.rest('POST', path, { body: sent, headers })).status]).toEqual([path, status]);
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
    '/session',
    '/graphql/x',
    '/livez/x',
    '/users/me/items/1',
    '/.well-known/x',
    '*',
  ])('H3 OPTIONS %s, which nothing has, is 404 as JSON, with the headers of every answer and no list of methods', async (path) => {
    const answer = await shop.raw(`OPTIONS ${path} HTTP/1.1\r\nHost: shop\r\nOrigin: ${EVIL}\r\nConnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 404 .*\r\n\r\n\{"detail":"Not found"\}$/s);
    expect(answer).toContain('\r\nAccess-Control-Allow-Origin: *\r\n');
    expect(answer).not.toMatch(/\r\n(Allow|Access-Control-Allow-(Methods|Headers|Credentials)):/i);
  });
});

function preflightOf(methods: string): Record<string, string> {
  return { 'access-control-allow-origin': '*', 'access-control-allow-methods': `${methods}, OPTIONS` };
}

function crossOrigin({ headers }: Answer): Record<string, string> {
  // Caches tell callers apart by their credentials, and are not to by where they come from.
  const isOfOrigins = ([name, value]: [string, string]) =>
    name.startsWith('access-control-') || (name === 'vary' && /origin|\*/i.test(value));
  return Object.fromEntries([...headers].filter(isOfOrigins));
}

async function refusal(path: string, request: RequestOptions): Promise<[number, unknown]> {
  const { status, body } = await shop.rest('GET', path, request);
  return [status, body.detail];
}
