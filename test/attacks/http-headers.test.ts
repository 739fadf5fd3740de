import { describe, expect, test } from '../support/jest.ts';
import {
  PASSWORD,
  PUBLIC_URL,
  useShop,
  type Answer,
  type RequestOptions,
} from '../support/shop.ts';

const shop = useShop();

const CREATE = '/api/v1/shop/product/';
const PAGES = '/api/v2/shop/products';
const EVIL = 'evil.example';

/** The headers of helmet, and the CORS headers of every response. */
const EVERYWHERE = {
  'access-control-allow-origin': '*',
  'content-security-policy': expect.stringMatching(/^default-src 'none'/),
  'cross-origin-resource-policy': 'cross-origin',
  'referrer-policy': 'no-referrer',
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'x-frame-options': expect.stringMatching(/^(SAMEORIGIN|DENY)$/),
  'x-request-id': expect.stringMatching(/^[\da-f-]{36}$/),
};

describe('headers of every response', () => {
  test.each<[string, string, string, RequestOptions, number]>([
    ['a list', 'GET', PAGES, {}, 200],
    ['the whole list', 'GET', '/api/v1/shop/products', {}, 200],
    ['HEAD', 'HEAD', PAGES, {}, 200],
    ['a preflight', 'OPTIONS', CREATE, {}, 200],
    ['liveness', 'GET', '/livez', {}, 200],
    ['an unknown asset', 'GET', '/assets/none.js', {}, 404],
    ['readiness', 'GET', '/readyz', {}, 200],
    ['an unsupported method of a health check', 'POST', '/livez', {}, 405],
    ['GraphQL', 'POST', '/graphql', { json: { query: '{ __typename }' } }, 200],
    [
      'a compiled GraphQL operation',
      'POST',
      '/graphql',
      { json: { query: '{ products { totalCount } }' } },
      200,
    ],
    ['GraphQL that does not parse', 'POST', '/graphql', { json: { query: '{' } }, 400],
    ['a cross-site GraphQL query', 'GET', '/graphql?query={__typename}', {}, 200],
    ['GraphQL by an unsupported method', 'PUT', '/graphql', {}, 405],
    [
      'GraphQL in an unacceptable media type',
      'POST',
      '/graphql',
      { json: { query: '{ __typename }' }, headers: { Accept: 'image/png' } },
      406,
    ],
    [
      'GraphQL that is too large',
      'POST',
      '/graphql',
      { json: { query: '#'.repeat(200_000) } },
      413,
    ],
    ['GraphQL of another type', 'POST', '/graphql', { body: '{}' }, 415],
    [
      'GraphQL with wrong credentials',
      'POST',
      '/graphql',
      { json: { query: '{ __typename }' }, token: 'x' },
      401,
    ],
    [
      'JSON that does not parse',
      'POST',
      '/session/login',
      { body: '{', headers: { 'Content-Type': 'application/json' } },
      400,
    ],
    ['missing credentials', 'GET', '/users/me/', {}, 401],
    ['wrong credentials', 'GET', '/users/me/', { token: 'x' }, 401],
    ['a wrong password', 'POST', '/token', { form: { username: 'x', password: 'y' } }, 401],
    ['a wrong session key', 'POST', '/session/logout', { json: { session_key: 'x' } }, 401],
    ['an unknown pk', 'GET', '/api/v1/shop/product/1', {}, 404],
    ['an unknown path', 'GET', '/nothing', {}, 404],
    ['a path that cannot be decoded', 'GET', '/%zz', {}, 404],
    ['an unsupported method', 'DELETE', '/blog', {}, 405],
    [
      'a body that is too large',
      'POST',
      '/session/login',
      { json: { username: 'x'.repeat(20_000) } },
      413,
    ],
    ['a form that is too large', 'POST', '/token', { form: { username: 'x'.repeat(20_000) } }, 413],
    ['another content type', 'POST', '/session/login', { body: '{}' }, 415],
    ['an invalid query parameter', 'GET', `${PAGES}?page=0`, {}, 422],
    [
      'problem details',
      'GET',
      '/nothing',
      { headers: { Accept: 'application/problem+json' } },
      404,
    ],
  ])(
    'H4 %s: %s %s has the headers of helmet, and none that names the software',
    async (_what, method, path, request, status) => {
      await shop.graphql('{ products { totalCount } }');
      const answer = await shop.rest(method, path, request);
      expect(answer.status).toBe(status);
      expectGuarded(answer);
    },
  );

  test.each<[string, RequestOptions]>([
    ['/blog', {}],
    ['/users/me/', {}],
    ['/api/users', { headers: { Accept: 'application/problem+json' } }],
  ])('H4 an internal error has the headers of helmet: GET %s', async (path, request) => {
    const as = await shop.makeUser();
    await shop.sql('alter table "user" rename to user_away');
    const answer = await shop
      .rest('GET', path, { as, ...request })
      .finally(() => shop.sql('alter table user_away rename to "user"'));
    expect(answer.status).toBe(500);
    expectGuarded(answer);
    expect(answer.text).not.toMatch(/user_away|relation|does not exist|select|\.[jt]s\b/i);
    expect((await shop.rest('GET', path, { as })).status).toBe(200);
  });

  test.each(['/', '/graphiql', '/docs', '/usage', '/graphql'])(
    'H4 a page has its own content security policy, without frames and with a nonce for scripts: %s',
    async (path) => {
      const answer = await fetch(shop.url + path, { headers: { Accept: 'text/html' } });
      expect(Object.fromEntries(answer.headers)).toMatchObject(EVERYWHERE);
      const policy = answer.headers.get('Content-Security-Policy') ?? '';
      expect(policy).toMatch(/(^|; *)frame-ancestors 'none'(;|$)/);
      const [, scripts = ''] = /(?:^|; *)script-src ([^;]*)/.exec(policy) ?? [];
      expect(scripts).toMatch(/^'nonce-[\w+/]{22}==' 'strict-dynamic'$/);
      expect(await answer.text()).toContain(
        `nonce="${scripts.slice("'nonce-".length, "'nonce-".length + 24)}"`,
      );
    },
  );

  // A cache that ignores X-SESSION-ID could serve one caller's response to the next, unless
  // Cache-Control forbids it (RFC 9111, 3 and 4.2.2).
  test.each(['/users/me/', '/users/me/items/', '/blog', '/api/users'])(
    'H4 no shared cache may store the response to one caller: GET %s',
    async (path) => {
      await shop.makeUser({ username: 'ada' });
      const { body } = await shop.rest('POST', '/session/login', {
        json: { username: 'ada', password: PASSWORD },
      });
      const answer = await shop.rest('GET', path, { sessionKey: String(body.session_key) });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('Cache-Control')).toMatch(/\b(no-store|private)\b/);
    },
  );
});

describe('client input in headers', () => {
  const SPLIT = [
    '\r\nSet-Cookie: a=b',
    '\nSet-Cookie: a=b',
    '\rSet-Cookie: a=b',
    '\u2028Set-Cookie: a=b',
    '\u560d\u560aSet-Cookie: a=b',
    '\0Set-Cookie: a=b',
  ];
  const ENCODED = [
    ...SPLIT.map(encodeURIComponent),
    '%250d%250aSet-Cookie:%20a=b',
    '%E5%98%8D%E5%98%8ASet-Cookie:a=b',
    '%0%0d%0aSet-Cookie:a=b',
  ];

  test.each(ENCODED)('H4 a line break in a URL never adds a response header: %s', async (split) => {
    await shop.makeProducts(30);
    const plain = headerNames(await shop.rest('GET', `${PAGES}?page=2`));
    const { username } = await shop.makeUser();
    for (const path of [
      `${PAGES}?page=2${split}`,
      `${PAGES}?page=2&x=${split}`,
      `${PAGES}?limit=1&offset=1${split}`,
      `/api/v1/shop/product/1${split}`,
      `/nothing${split}`,
      `/graphql?query=${split}`,
      `/api/v2/auth/login?username=${username}${split}&password=x`,
    ]) {
      const answer = await shop.rest('GET', path);
      expect(answer.status).toBeLessThan(500);
      expect(answer.headers.get('Set-Cookie')).toBeNull();
      const more = headerNames(answer).filter((name) => !plain.includes(name));
      expect(['cache-control', 'www-authenticate']).toEqual(expect.arrayContaining(more));
    }
  });

  test.each(SPLIT)(
    'H4 Location has only the number of a product, whatever its name: %j',
    async (split) => {
      const as = await shop.makeUser({ scopes: ['products:write'] });
      const json = { name: `Pen${split}`, barcode: '4006381333931', price: 1 };
      const answer = await shop.rest('POST', CREATE, { as, json });
      expect([201, 422]).toContain(answer.status);
      expect(answer.headers.get('Set-Cookie')).toBeNull();
      expect(answer.headers.get('Location')).toBe(
        answer.status === 201 ? '/api/v1/shop/product/1' : null,
      );
    },
  );

  test.each([
    'X-Request-Id',
    'X-Correlation-Id',
    'Origin',
    'Accept-Language',
    'User-Agent',
    'Referer',
    'traceparent',
    'Via',
    'Cookie',
  ])('H4 the value of %s is not repeated in the response', async (name) => {
    for (const [method, path] of [
      ['GET', PAGES],
      ['GET', '/nothing'],
      ['OPTIONS', CREATE],
      ['GET', '/users/me/'],
    ] as const) {
      const answer = await shop.rest(method, path, { headers: { [name]: 'canary-7f' } });
      expect(JSON.stringify([...answer.headers]) + answer.text).not.toContain('canary-7f');
    }
  });
});

describe('a forged host', () => {
  const FORGED: [string, Record<string, string>][] = [
    ['Host', {}],
    ['Host with a port', { Host: `${EVIL}:80` }],
    ['Origin and Referer', { Origin: `https://${EVIL}`, Referer: `https://${EVIL}/` }],
    [
      'X-Forwarded-Host',
      {
        'X-Forwarded-Host': EVIL,
        'X-Forwarded-Proto': 'gopher',
        'X-Forwarded-Port': '666',
        'X-Forwarded-Prefix': '/evil',
      },
    ],
    ['Forwarded', { Forwarded: `for=1.2.3.4;host=${EVIL};proto=gopher` }],
    [
      'headers of other proxies',
      {
        'X-Host': EVIL,
        'X-Original-Host': EVIL,
        'X-HTTP-Host-Override': EVIL,
        'X-Forwarded-Server': EVIL,
      },
    ],
    [
      'headers with a URL',
      {
        'X-Original-URL': `http://${EVIL}/users/me/`,
        'X-Rewrite-URL': '/users/me/',
        'Base-Url': `http://${EVIL}`,
      },
    ],
  ];

  test.each(FORGED)(
    'H7 by %s changes no link, and no response to the next client',
    async (_what, headers) => {
      await shop.makeProducts(25);
      const token = shop.tokenOf(await shop.makeUser({ password: null }));
      await shop.sql(
        `insert into "user" (username) select 'extra ' || n from generate_series(1, 24) as n`,
      );
      const clean = await shop.rest('GET', `${PAGES}?page=2`);
      const lines = Object.entries({ Host: EVIL, ...headers }).map((line) => line.join(': '));
      const request = (target: string, ...more: string[]) =>
        [`GET ${target} HTTP/1.1`, ...lines, ...more, 'Connection: close', '', ''].join('\r\n');
      for (const [list, query, around, ...more] of [
        [PAGES, 'page=2', ['page=3', 'page=1']],
        [PAGES, 'limit=5&offset=10', ['limit=5&offset=15', 'limit=5&offset=5']],
        ['/api/users', 'page=2', ['page=3', 'page=1'], `Authorization: Bearer ${token}`],
      ] as const) {
        const [next, previous] = around.map((part) => `${PUBLIC_URL}${list}?${part}`);
        // Often enough to be cached, if it could be.
        for (let time = 0; time < 3; time++) {
          const answer = await shop.raw(request(`${list}?${query}`, ...more));
          expect(answer).toMatch(/^HTTP\/1\.1 200 /);
          expect(answer).toContain(`"next":"${next}","previous":"${previous}"`);
          expect(answer).toContain(
            `\r\nLink: <${next}>; rel="next", <${previous}>; rel="prev"\r\n`,
          );
          expect(answer).not.toMatch(/evil|gopher|:666/);
        }
      }
      expect((await shop.rest('GET', `${PAGES}?page=2`)).text).toBe(clean.text);
      expect(await shop.raw(request('/livez'))).toMatch(/\{"status":"ok"\}$/);
      expect(await shop.raw(request('/nothing'))).not.toMatch(/evil|gopher/);
      expect(await shop.raw(request('/users/me/'))).toMatch(/^HTTP\/1\.1 401 /);
    },
  );

  test('H7 does not change Location', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const headers = { 'X-Forwarded-Host': EVIL, Forwarded: `host=${EVIL}` };
    const answer = await shop.rest('POST', CREATE, {
      as,
      headers,
      json: { name: 'Pen', barcode: '4006381333931', price: 1 },
    });
    expect([answer.status, answer.headers.get('Location')]).toEqual([
      201,
      '/api/v1/shop/product/1',
    ]);
  });
});

describe('range and conditional requests', () => {
  test.each<[string, Record<string, string>]>([
    ['a range', { Range: 'bytes=0-0' }],
    ['a range from the end', { Range: 'bytes=-1' }],
    ['a range beyond the end', { Range: 'bytes=999999999-' }],
    ['a reversed range', { Range: 'bytes=5-1' }],
    ['very many ranges', { Range: `bytes=${'0-,'.repeat(1_300)}0-` }],
    ['a range of items', { Range: 'items=0-1' }],
    ['an invalid range', { Range: 'bytes=a-b' }],
    ['a range unless it changed', { Range: 'bytes=0-0', 'If-Range': '"x"' }],
    ['any version but one', { 'If-None-Match': '"x"' }],
    ['any version but all', { 'If-None-Match': '*' }],
    ['changes since a future date', { 'If-Modified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT' }],
    ['changes since an invalid date', { 'If-Modified-Since': 'yesterday' }],
    ['only cached responses', { 'Cache-Control': 'only-if-cached' }],
  ])(
    'H11 a client that requests %s gets the complete response, because no path has ranges or validators',
    async (_what, headers) => {
      await shop.makeProducts(3);
      const as = await shop.makeUser();
      for (const path of [
        PAGES,
        '/api/v1/shop/products',
        '/api/v1/shop/product/1',
        '/users/me/',
        '/livez',
      ]) {
        const whole = await shop.rest('GET', path, { as });
        const partial = await shop.rest('GET', path, { as, headers });
        expect([partial.status, partial.text]).toEqual([200, whole.text]);
        for (const name of ['Content-Range', 'Accept-Ranges', 'ETag', 'Last-Modified', 'Age'])
          expect(partial.headers.get(name)).toBeNull();
        const head = await shop.rest('HEAD', path, { as, headers });
        expect([head.status, head.headers.get('Content-Length')]).toEqual([
          200,
          whole.headers.get('Content-Length'),
        ]);
      }
    },
  );
});

function expectGuarded({ headers }: Answer): void {
  expect(Object.fromEntries(headers)).toMatchObject(EVERYWHERE);
  for (const name of ['X-Powered-By', 'Server', 'Via', 'Set-Cookie', 'X-AspNet-Version'])
    expect(headers.get(name)).toBeNull();
}

function headerNames({ headers }: Answer): string[] {
  return [...headers].map(([name]) => name);
}
