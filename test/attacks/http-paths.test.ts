import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const shop = useShop();

let user: User;

beforeEach(async () => {
  user = await shop.makeUser({ username: 'ada', email: 'ada@canary.example' });
  await shop.makeItem(user, 'canary item');
  await shop.makeEntry(user, { title: 'canary entry' });
});

/** Variants of a path that a proxy or a router may resolve differently. */
const DISGUISES: [string, (path: string) => string][] = [
  ['two slashes inside', (path) => path.replace(/(.)\//, '$1//')],

  ['dots that leave and return', (path) => `/livez/..${path}`],

  ['an encoded slash', (path) => path.replace(/(.)\//, '$1%2f')],

  ['an encoded letter', (path) => path.replace(/[a-z]/, hex)],

  ['a backslash', (path) => path.replace(/(.)\//, '$1\\')],

  ['a semicolon', (path) => `${path};jsessionid=1`],

  ['capitals', (path) => path.toUpperCase()],
];

/** Equivalent forms of the same path in HTTP: they reach it, and its check of credentials. */
const SAME: [string, (path: string) => string][] = [
  ['a slash behind it', (path) => `${path}/`],
  ['an empty query', (path) => `${path}?`],

  ['a URL of another host', (path) => `http://livez.example:1${path}`],
];

const PROTECTED = ['/users/me', '/users/me/items', '/blog', '/api/users'];

describe('protected paths', () => {
  test.each(DISGUISES)('H3 %s makes it an unknown path', async (_what, disguised) => {
    for (const path of PROTECTED) {
      // The disguise does not change a path of one segment.
      if (disguised(path) === path) continue;
      for (const credentials of ['', `Authorization: Bearer ${shop.tokenOf(user)}\r\n`]) {
        const answer = await raw('GET', disguised(path), credentials);
        expect([disguised(path), statusOf(answer)]).toEqual([disguised(path), 404]);
        expect(answer).toMatch(/\r\n\r\n\{"detail":"Not found"\}$/);
        expect(answer).not.toContain('canary');
        expect(answer).not.toMatch(/\r\nLocation:/i);
      }
    }
    expect(
      statusOf(await raw('GET', '/users/me', `Authorization: Bearer ${shop.tokenOf(user)}\r\n`)),
    ).toBe(200);
  });

  test.each(SAME)('H3 %s reaches the same path, and bypasses no check', async (_what, written) => {
    for (const path of PROTECTED) {
      const answer = await raw('GET', written(path));
      expect([statusOf(answer), /"detail":"[^"]*"/.exec(answer)?.[0]]).toEqual([
        401,
        '"detail":"Not authenticated"',
      ]);
      expect(answer).not.toContain('canary');
    }
  });
});

describe('other methods in disguise', () => {
  const OVERRIDES = ['X-HTTP-Method-Override', 'X-Method-Override', '_method'];

  test.each(OVERRIDES)('H3 %s does not override the method of a request', async (name) => {
    const scoped = await shop.makeUser({ scopes: ['products:write'] });
    const { pk } = await shop.makeProduct();
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'HEAD', 'TRACE']) {
      const headers = { [name]: method };
      const detail = await shop.rest('GET', `/api/v1/shop/product/${pk}?_method=${method}`, {
        as: scoped,
        headers,
      });
      expect([detail.status, detail.body.pk]).toEqual([200, pk]);
      const posted = await shop.rest('POST', `/api/v1/shop/product/${pk}?_method=${method}`, {
        as: scoped,
        headers,
        json: { _method: method },
      });
      expect([posted.status, posted.headers.get('Allow')]).toEqual([405, 'GET, OPTIONS']);
      const options = await shop.rest('OPTIONS', '/users/me/', { as: user, headers });
      expect([options.status, options.text]).toEqual([200, '']);
    }
    expect(await shop.sql('select pk::int from product')).toEqual([{ pk }]);
    expect(await shop.sql('select * from session')).toEqual([]);
  });
});

describe('HEAD', () => {
  const GETS = [
    '/users/me/',
    '/blog',
    '/api/users',

    '/api/v1/shop/products',
    '/api/v1/shop/product/1',
    '/api/v2/shop/products',

    `/api/v2/auth/login?username=ada&password=${encodeURIComponent(PASSWORD)}`,
    '/api/v1/shop/product/999',
    '/api/v2/shop/products?page=0',
    '/nothing',
  ];

  test.each(GETS)(
    'H11 HEAD %s has the headers of GET and no body: the next response follows immediately',
    async (path) => {
      await shop.makeProducts(3);
      // A login ignores other credentials.
      const credentials = path.startsWith('/api/v2/auth')
        ? ''
        : `Authorization: Bearer ${shop.tokenOf(user)}\r\n`;
      const sent = `${credentials}apollo-require-preflight: 1\r\n`;
      const get = await untilClosed(
        `GET ${path} HTTP/1.1\r\nHost: shop\r\n${sent}Connection: close\r\n\r\n`,
      );
      const both = await untilClosed(
        `HEAD ${path} HTTP/1.1\r\nHost: shop\r\n${sent}\r\nGET /livez HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`,
      );
      const [head = '', next = ''] = both.split(/(?<=\r\n\r\n)/);
      expect(next).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(both.endsWith('{"status":"ok"}')).toBe(true);
      expect(stable(head)).toEqual(stable(get.slice(0, get.indexOf('\r\n\r\n'))));
    },
  );

  test('H11 HEAD without credentials is rejected like GET', async () => {
    for (const path of PROTECTED) {
      const answer = await raw('HEAD', path);
      expect(answer).toMatch(/^HTTP\/1\.1 401 .*\r\nWWW-Authenticate: Bearer\r\n.*\r\n\r\n$/s);
    }
  });
});

function raw(method: string, target: string, headers = ''): Promise<string> {
  return shop.raw(
    `${method} ${target} HTTP/1.1\r\nHost: shop\r\n${headers}Connection: close\r\n\r\n`,
  );
}

/** Returns what the server sends until it closes the connection, without a time limit. */
function untilClosed(request: string): Promise<string> {
  return text(
    connect(shop.port, '127.0.0.1')
      .setEncoding('latin1')
      .on('connect', function (this: Socket) {
        this.write(request, 'latin1');
      }),
  );
}

function statusOf(answer: string): number {
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1]);
}

/** Returns the header lines that do not vary between responses or with the transfer. */
function stable(head: string): string[] {
  return head
    .trim()
    .split('\r\n')
    .filter((line) => !/^(Date|X-Request-Id|Connection|Keep-Alive|Transfer-Encoding):/i.test(line));
}

function hex(letter: string): string {
  return `%${letter.charCodeAt(0).toString(16)}`;
}
