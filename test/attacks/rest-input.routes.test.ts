import { connect } from 'node:net';
import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { features } from '../../src/features.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const CANARY = 'canary-5f1c';

/** Every path, its Allow header, and the member that holds its errors. */
const PATHS = [
  ['/token', 'POST, OPTIONS', 'detail'],
  ['/login', 'POST, OPTIONS', 'detail'],
  ['/session/login', 'POST, OPTIONS', 'data'],
  ['/session/logout', 'POST, OPTIONS', 'data'],
  ['/api/v2/auth/login', 'GET, POST, OPTIONS', 'data'],
  ['/users/me/', 'GET, OPTIONS', 'detail'],
  ['/users/me/items/', 'GET, OPTIONS', 'detail'],
  ['/blog', 'GET, OPTIONS', 'detail'],
  ['/api/users', 'GET, OPTIONS', 'detail'],
  ['/api/v1/shop/products', 'GET, OPTIONS', 'detail'],
  ['/api/v1/shop/product/1', 'GET, OPTIONS', 'detail'],
  ['/api/v1/shop/product/', 'POST, OPTIONS', 'detail'],
  ['/api/v2/shop/products', 'GET, OPTIONS', 'detail'],
  ['/graphql', 'GET, POST, OPTIONS', 'errors'],
  ['/livez', 'GET, OPTIONS', 'detail'],
  ['/readyz', 'GET, OPTIONS', 'detail'],
] as const;
const POST_PATHS = PATHS.filter(([, allow]) => allow.includes('POST')).map(([path]) => path);
const NAMED = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'];
/** Methods of other protocols over HTTP, and others that Node's parser accepts. */
const STRANGE = [
  'PROPFIND',
  'PROPPATCH',
  'MKCOL',
  'COPY',
  'MOVE',
  'LOCK',
  'UNLOCK',
  'SEARCH',
  'PURGE',
  'LINK',
  'REPORT',
  'M-SEARCH',
  'QUERY',
];

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ password: null, scopes: ['products:write'] });
  await shop.makeProduct();
});

test('R13 PATHS holds every path of the features', () => {
  const endpoints = features.flatMap(({ routes }) => routes?.(shop.config) ?? []);
  const paths = new Set(
    endpoints.map(({ path }) => path.replace('{pk}', '1').replace(/(.)\/$/, '$1')),
  );
  const listed = new Set(PATHS.map(([path]) => path.replace(/(.)\/$/, '$1')));
  expect([...paths].filter((path) => !listed.has(path))).toEqual([]);
});

describe.each(PATHS)('%s', (path, allow, key) => {
  test(`R13 ${path} rejects every other method with 405 and Allow, and repeats no input`, async () => {
    for (const method of [...NAMED, ...STRANGE].filter((name) => !allow.includes(name))) {
      for (const target of [
        path,
        `${path}?x=${CANARY}`,
        path.endsWith('/') ? path.slice(0, -1) : `${path}/`,
      ]) {
        const { status, head, body } = await send(method, target);
        const message = `Method "${method}" not allowed.`;
        const error =
          key === 'errors' ? [{ message, extensions: { code: 'METHOD_NOT_ALLOWED' } }] : message;
        expect([status, JSON.parse(body)]).toEqual([405, { [key]: error }]);
        expect(head).toContain(`\r\nAllow: ${allow}\r\n`);
        expect(head).toContain('\r\nContent-Type: application/json; charset=utf-8\r\n');
        expect(head + body).not.toContain(CANARY);
      }
    }
    expect(await served()).toBe(true);
  });
});

test.each([
  'CONNECT',
  'get',
  'Get',
  'G ET',
  'GÉT',
  'FOO',
  '\0GET',
  'GET\0',
  '',
  'GETX',
  'JUNK',
  'DEBUG',
  'TRACK',
  '%47ET',
  '""',
])('R13 no path accepts the method %j', async (method) => {
  for (const [path] of PATHS) {
    // Node itself rejects invalid methods, and closes a CONNECT without a response.
    expect(
      await shop.raw(
        `${method} ${path} HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${shop.tokenOf(writer)}\r\nConnection: close\r\n\r\n`,
      ),
    ).toMatch(/^(HTTP\/1\.1 40[05] |$)/);
  }
  expect(await served()).toBe(true);
});

test('R13 HEAD is rejected where GET is not served, and has no body', async () => {
  for (const path of POST_PATHS.filter(
    (name) => name !== '/graphql' && name !== '/api/v2/auth/login',
  )) {
    const { status, head, body } = await send('HEAD', path);
    expect([status, body]).toEqual([405, '']);
    expect(head).toContain('\r\nAllow: POST, OPTIONS\r\n');
  }
});

test.each([
  '/nothing',
  '/api',
  '/api/v1',
  '/api/v3/shop/products',
  '/api/v1/shop/products/1',
  '/api/v1/shop/product/1/2',
  '/api/v1/shop/..%2fproducts',
  '/assets',
  '/users',
  '/users/me/items/1',
  '/session',
  '/graphql/x',
  '/GraphQL',
  '/Token',
  '/TOKEN',
  '/constructor',
  '/__proto__',
  '/token.json',
  '/token;x=1',
  '/token%20',
  '/token//',
  '//token',
  '/.env',
  '/.git/config',
  '/../../etc/passwd',
  '/%2e%2e/%2e%2e/etc/passwd',
  '/index.html',
  '/assets/../package.json',
  '/metrics',
  '/admin',
  '/%3Cscript%3Ecanary%3C/script%3E',
  '/%zz',
  `/${'x'.repeat(8_000)}`,
])('R13 %s is 404 in JSON by every method, and not repeated', async (path) => {
  for (const method of [...NAMED, 'PROPFIND']) {
    const { status, head, body } = await send(method, path);
    expect([status, body]).toEqual([404, '{"detail":"Not found"}']);
    expect(head).toContain('\r\nContent-Type: application/json; charset=utf-8\r\n');
    expect(head).not.toMatch(/canary|etc\/passwd|X-Powered-By/);
  }
  expect(await served()).toBe(true);
});

test.each([
  '*',
  'http://evil.example/nothing',
  'evil.example:443',
  'foo://x?y',
  '?',
  'nothing',
  '#',
  '/\u00ff',
  '/a b',
  '/\0',
])('R13 the target %j is rejected', async (target) => {
  for (const method of NAMED) {
    const answer = await shop.raw(
      `${method} ${target} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 (400|404) /);
    expect(answer).not.toMatch(/<html|<pre|evil/i);
    if (answer.includes(' 404 ')) expect(answer).toContain('{"detail":"Not found"}');
  }
  expect(await served()).toBe(true);
});

describe('R22: Expect headers and short bodies', () => {
  test.each(['42', 'x', '100', 'continue', '100-continued', '200-ok', '{}'])(
    'R22 Expect: %s is 417, and nothing is stored',
    async (expected) => {
      for (const path of POST_PATHS) {
        const { status } = await send(
          'POST',
          path,
          [`Expect: ${expected}`, 'Content-Type: application/json'],
          product(),
        );
        expect(status).toBe(417);
      }
      expect(await shop.sql('select count(*)::int as count from product')).toEqual([{ count: 1 }]);
      expect(await served()).toBe(true);
    },
  );

  test('R22 Expect: 100-continue gets 100 Continue, and is served', async () => {
    const { status, body } = await send(
      'POST',
      '/api/v1/shop/product/',
      ['Expect: 100-continue', 'Content-Type: application/json'],
      product(),
    );
    expect(status).toBe(100);
    expect(body).toMatch(/^HTTP\/1\.1 201 /);
  });

  test.each(POST_PATHS)(
    'R22 a body shorter than its length is never accepted: POST %s',
    async (path) => {
      const body = path.endsWith('product/') ? product() : '{"query":"{ __typename }"}';
      for (const type of ['application/json', 'application/x-www-form-urlencoded']) {
        const head = `POST ${path} HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${shop.tokenOf(writer)}\r\nContent-Type: ${type}\r\n`;
        expect(await hangUp(`${head}Content-Length: ${body.length + 8}\r\n\r\n${body}`)).toMatch(
          /^(HTTP\/1\.1 4\d\d |$)/,
        );
        const chunk = `${body.length.toString(16)}\r\n${body}\r\n`;
        expect(await hangUp(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk}`)).toMatch(
          /^(HTTP\/1\.1 4\d\d |$)/,
        );
      }
      expect(await shop.sql('select count(*)::int as count from product')).toEqual([{ count: 1 }]);
      expect(
        shop.logged.filter((line) => (JSON.parse(line) as { level: number }).level >= 50),
      ).toEqual([]);
      expect(await served()).toBe(true);
    },
  );
});

/** Returns the response to a request with a canary in its headers and body. */
async function send(method: string, path: string, headers: string[] = [], content?: string) {
  const body = content ?? JSON.stringify({ canary: CANARY });
  const lines = [
    `${method} ${path} HTTP/1.1`,
    'Host: shop',
    `Authorization: Bearer ${shop.tokenOf(writer)}`,
    `X-Canary: ${CANARY}`,
    `Cookie: canary=${CANARY}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
    ...headers,
  ];
  const [head = '', ...rest] = (await shop.raw(`${lines.join('\r\n')}\r\n\r\n${body}`)).split(
    '\r\n\r\n',
  );
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]),
    head: `${head}\r\n`,
    body: rest.join('\r\n\r\n'),
  };
}

/** Sends a request, half-closes the connection, and returns the response. */
function hangUp(request: string): Promise<string> {
  return new Promise((done, fail) => {
    let answer = '';
    const socket = connect({ port: shop.port, host: '127.0.0.1', allowHalfOpen: true }, () =>
      socket.end(request, 'latin1'),
    );
    socket.on('data', (piece: Buffer) => (answer += piece.toString('latin1')));
    socket.on('end', () => done(answer)).on('error', fail);
  });
}

function product(): string {
  return JSON.stringify({ name: 'Pen', barcode: shop.newBarcode(), price: 1 });
}

async function served(): Promise<boolean> {
  const { status, body } = await shop.rest('GET', '/api/v1/shop/product/1');
  return status === 200 && body.pk === 1;
}
