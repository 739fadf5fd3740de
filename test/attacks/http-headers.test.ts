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
    ['a preflight', 'OPTIONS', CREATE, {}, 200],

    ['GraphQL', 'POST', '/graphql', { json: { query: '{ __typename }' } }, 200],

    [
      'GraphQL with wrong credentials',
      'POST',
      '/graphql',
      { json: { query: '{ __typename }' }, token: 'x' },
      401,
    ],

    ['wrong credentials', 'GET', '/users/me/', { token: 'x' }, 401],

    ['an unknown path', 'GET', '/nothing', {}, 404],

    ['an unsupported method', 'DELETE', '/blog', {}, 405],

    ['an invalid query parameter', 'GET', `${PAGES}?page=0`, {}, 422],
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
  const ENCODED = ['%0d%0aSet-Cookie:%20a=b', '%250d%250aSet-Cookie:%20a=b'];

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

  test.each(['X-Request-Id', 'Origin', 'User-Agent', 'traceparent'])(
    'H4 the value of %s is not repeated in the response',
    async (name) => {
      for (const [method, path] of [
        ['GET', PAGES],
        ['GET', '/nothing'],
        ['OPTIONS', CREATE],
        ['GET', '/users/me/'],
      ] as const) {
        const answer = await shop.rest(method, path, { headers: { [name]: 'canary-7f' } });
        expect(JSON.stringify([...answer.headers]) + answer.text).not.toContain('canary-7f');
      }
    },
  );
});

describe('a forged host', () => {
  const FORGED: [string, Record<string, string>][] = [
    ['Host with a port', { Host: `${EVIL}:80` }],

    [
      'X-Forwarded-Host',
      {
        'X-Forwarded-Host': EVIL,
        'X-Forwarded-Proto': 'gopher',
        'X-Forwarded-Port': '666',
        'X-Forwarded-Prefix': '/evil',
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
});

function expectGuarded({ headers }: Answer): void {
  expect(Object.fromEntries(headers)).toMatchObject(EVERYWHERE);
  for (const name of ['X-Powered-By', 'Server', 'Via', 'Set-Cookie', 'X-AspNet-Version'])
    expect(headers.get(name)).toBeNull();
}

function headerNames({ headers }: Answer): string[] {
  return [...headers].map(([name]) => name);
}
