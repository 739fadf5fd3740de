import { once } from 'node:events';
import { connect } from 'node:net';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const JSON_TYPE = 'application/json';
const FORM_TYPE = 'application/x-www-form-urlencoded';
const KB = 1024;
const MB = 1024 * KB;
/** Maximum number of bytes in the socket buffers of both sides when the server closes. */
const MAX_IN_TRANSIT = 24 * MB;
/** Number of bytes that counts as endless. */
const ENDLESS = 128 * MB;
const TOO_LARGE = 'The request is too large';
const UNREADABLE = 'The request cannot be read';
const NOT_SUPPORTED = 'This content type, charset or encoding is not supported';

interface Route {
  path: string;
  type: string;
  /** Maximum size of a body, in bytes. */
  limit: number;
}

const FORM_ROUTES: Route[] = ['/token', '/login'].map((path) => ({
  path,
  type: FORM_TYPE,
  limit: 4 * KB,
}));
const REST_ROUTES: Route[] = [
  '/session/login',
  '/session/logout',
  '/api/v2/auth/login',
  '/api/v1/shop/product/',
].map((path) => ({
  path,
  type: JSON_TYPE,
  limit: 16 * KB,
}));
const GRAPHQL: Route = { path: '/graphql', type: JSON_TYPE, limit: 100 * KB };
const ROUTES = [...FORM_ROUTES, ...REST_ROUTES, GRAPHQL];
const WITHOUT_HASH = [...REST_ROUTES.slice(1), GRAPHQL];

let caller: User;

beforeEach(async () => {
  caller = await shop.makeUser({ scopes: ['products:write'] });
});

afterEach(checkService);

describe('R4: a body that is too large', () => {
  test.each(ROUTES)(
    'R4 $limit bytes are read at POST $path, and one more is 413',
    async (route) => {
      const { limit } = route;
      for (const over of [limit + 1, 2 * limit, 10 * limit]) {
        const answer = await post(route, await paddedBody(route, over));
        expect([answer.status, messageOf(answer)]).toEqual([413, TOO_LARGE]);
      }
      expect([200, 201]).toContain((await post(route, await paddedBody(route, limit))).status);
    },
  );

  test.each(ROUTES)('R4 10 MB are 413 at POST $path', async (route) => {
    const { answer, sent } = await streamed(
      route,
      [`Content-Length: ${10 * MB}`],
      () => 'x'.repeat(64 * KB),
      10 * MB,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(sent).toBeLessThanOrEqual(10 * MB);
  });

  test.each(ROUTES)(
    'R4 a declared length of 1 GB is 413 before the body is sent, and closes: POST $path',
    async (route) => {
      for (const length of ['1073741824', String(Number.MAX_SAFE_INTEGER)]) {
        const { answer } = await streamed(route, [`Content-Length: ${length}`], () => '{', 1);
        expect(answer).toMatch(/^HTTP\/1\.1 413 /);
        expect(answer).toMatch(/\r\nConnection: close\r\n/);
        expect(answer).toContain(TOO_LARGE);
      }
    },
  );

  test.each(ROUTES)(
    'R4 a declared length of 1 GB with Expect: 100-continue is 413: POST $path',
    async (route) => {
      const { answer } = await streamed(
        route,
        ['Content-Length: 1073741824', 'Expect: 100-continue'],
        () => '',
        0,
      );
      expect(answer).toMatch(/(^|\r\n\r\n)HTTP\/1\.1 413 /);
      expect(answer).toMatch(/\r\nConnection: close\r\n/);
    },
  );

  test.each([
    '-1',
    '1e3',
    '0x10',
    '+10',
    '10, 10',
    '10 10',
    '18446744073709551617',
    '9'.repeat(400),
    '',
  ])('R4 the declared length %j is rejected and closes the connection', async (length) => {
    for (const route of ROUTES) {
      const { answer } = await streamed(route, [`Content-Length: ${length}`], () => '{"a":', 1);
      expect(answer).toMatch(/^HTTP\/1\.1 4(00|13) /);
    }
  });

  test.each(ROUTES)(
    'R4 chunks without an end are 413, as soon as they are too large: POST $path',
    async ({ path, type }) => {
      const socket = connect(shop.port, '127.0.0.1');
      const head = `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: ${type}\r\n`;
      socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
      for (let count = 0; count < 8; count++)
        socket.write(`${(16 * KB).toString(16)}\r\n${'x'.repeat(16 * KB)}\r\n`);
      const [answer] = (await once(socket, 'data')) as [Buffer];
      // Without credentials, no body is read.
      expect(answer.toString()).toMatch(/^HTTP\/1\.1 (413|401) /);
      socket.destroy();
    },
  );

  test.each([
    ['an endless chunk size', '', 'f'.repeat(64 * KB)],
    ['an endless chunk extension', '1;', 'x'.repeat(64 * KB)],
    ['endless chunk extensions', '1', ';a=b'.repeat(16 * KB)],
    ['an endless trailer', '1\r\nx\r\n0\r\nX: ', 'x'.repeat(64 * KB)],
    ['endless trailers', '1\r\nx\r\n0\r\n', 'X: x\r\n'.repeat(16 * KB)],
  ])('R4 %s is rejected, and the connection is closed', async (_what, start, rest) => {
    for (const route of ROUTES) {
      let next = start + rest;
      const piece = () => {
        const now = next;
        next = rest;
        return now;
      };
      const { answer, sent } = await streamed(
        route,
        ['Transfer-Encoding: chunked'],
        piece,
        ENDLESS,
      );
      expect(answer).toMatch(/^(HTTP\/1\.1 4\d\d |$)/);
      expect(sent).toBeLessThan(MAX_IN_TRANSIT);
    }
  });
});

describe('R5: a compressed body', () => {
  const COMPRESSORS: [string, (text: string) => Buffer][] = [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
  ];
  const bombs = ROUTES.flatMap((route) =>
    COMPRESSORS.map(([encoding, compress]) => ({ ...route, route, encoding, compress })),
  );

  test.each(bombs)(
    'R5 $encoding that expands to 10 MB is 413 at POST $path',
    async ({ route, encoding, compress }) => {
      const start = route.type === JSON_TYPE ? '{"query":"{__typename}","pad":"' : 'username=';
      for (const bomb of [
        compress(start + 'x'.repeat(10 * MB)),
        compress(' '.repeat(10 * MB)),
        compress('x'.repeat(route.limit + 1)),
      ]) {
        const answer = await post(route, bomb, encoding);
        expect([answer.status, messageOf(answer)]).toEqual([413, TOO_LARGE]);
      }
    },
  );

  test.each(ROUTES)(
    'R5 a compressed body within the limit is read at POST $path',
    async (route) => {
      const statuses = [];
      for (const [encoding, compress] of COMPRESSORS)
        statuses.push((await post(route, compress(await goodBody(route)), encoding)).status);
      expect(new Set(statuses).size).toBe(1);
      expect([200, 201]).toContain(statuses[0]);
    },
  );

  test.each(ROUTES)('R5 corrupt compressed data is 400 at POST $path', async (route) => {
    const good = gzipSync(await goodBody(route));
    const wrongSum = Buffer.from(good);
    wrongSum.writeUInt32LE(0, wrongSum.length - 8);
    const bad: [string, Buffer][] = [
      ['gzip', Buffer.from(await goodBody(route))],
      ['gzip', good.subarray(0, 10)],
      ['gzip', good.subarray(0, -4)],
      ['gzip', wrongSum],
      ['gzip', Buffer.alloc(64)],
      ['gzip', deflateSync('{}')],
      ['gzip', gzipSync(gzipSync('{}'))],
      ['deflate', good],
    ];
    const found = [];
    for (const [encoding, body] of bad) {
      const answer = await post(route, body, encoding);
      found.push([answer.status, messageOf(answer)]);
    }
    // Gzip within gzip expands to bytes that are not UTF-8, which is 400 as well.
    expect(found).toEqual(bad.map(() => [400, UNREADABLE]));
  });

  test.each(ROUTES)('R5 an unknown encoding is 415 at POST $path', async (route) => {
    const unknown = [
      'foo',
      'gzip, gzip',
      'gzip,br',
      'compress',
      'chunked',
      'utf-8',
      '*',
      'gzip;q=1',
      'zip',
    ];
    const found = [];
    for (const encoding of unknown) {
      const answer = await post(route, gzipSync(await goodBody(route)), encoding);
      found.push([encoding, answer.status, messageOf(answer)]);
    }
    expect(found).toEqual(unknown.map((encoding) => [encoding, 415, NOT_SUPPORTED]));
  });

  test.each(ROUTES)(
    'R5 Brotli and Zstandard are 415, whose decoders take megabytes: POST $path',
    async (route) => {
      const body = await goodBody(route);
      for (const [encoding, bytes] of [
        ['br', brotliCompressSync(body)],
        ['zstd', zstdCompressSync(body)],
      ] as const) {
        const answer = await post(route, bytes, encoding);
        expect([answer.status, messageOf(answer)]).toEqual([415, NOT_SUPPORTED]);
        expect(answer.headers.get('accept-encoding')).toBe('gzip, deflate');
      }
    },
  );
});

describe('R23: a form', () => {
  test.each(FORM_ROUTES)('R23 an invalid escape is read literally: POST $path', async (route) => {
    for (const username of ['%zz', '%', '100%', '%4', '%u0041', 'a%zzb']) {
      expect((await post(route, `username=${username}&password=x`)).status).toBe(401);
      await shop.makeUser({ username });
      expect(
        (await post(route, `username=${username}&password=${encodeURIComponent(PASSWORD)}`)).status,
      ).toBe(200);
    }
  });

  test.each(FORM_ROUTES)('R23 a question mark at its start is read: POST $path', async (route) => {
    expect((await post(route, `?username=ada&password=x`)).status).toBe(422);
  });

  test.each(FORM_ROUTES)(
    'R23 escapes that are not UTF-8 match no user: POST $path',
    async (route) => {
      const escapes = ['%ff', '%c3%28', '%ed%a0%80', '%f5%80%80%80', '%c0%80', '%fe%ff'];
      for (const text of escapes) {
        const answer = await post(route, `username=${text}&password=${text}`);
        expect([answer.status, messageOf(answer), answer.headers.get('www-authenticate')]).toEqual([
          401,
          'Incorrect username or password',
          'Bearer',
        ]);
      }
      const bytes = Buffer.concat([
        Buffer.from('username='),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('&password=x'),
      ]);
      expect([400, 401]).toContain((await post(route, bytes)).status);
    },
  );

  test.each(FORM_ROUTES)(
    'R23 more than ten parameters are 413, whatever they are: POST $path',
    async (route) => {
      const good = await goodBody(route);
      const more = (count: number, parameter: (index: number) => string) =>
        [good, ...Array.from({ length: count }, (_, index) => parameter(index))].join('&');
      const kinds = [
        (index: number) => `p${index}=x`,
        () => 'a=b',
        () => 'a',
        () => 'scope=x',
        () => '__proto__=x',
        () => 'a[]=1',
      ];
      for (const parameter of kinds) {
        for (const count of [9, 100, 800]) {
          const answer = await post(route, more(count, parameter));
          expect([answer.status, messageOf(answer)]).toEqual([413, TOO_LARGE]);
        }
      }
      expect(
        (
          await post(
            route,
            more(8, (index) => `p${index}=x`),
          )
        ).status,
      ).toBe(200);
    },
  );

  test.each(FORM_ROUTES)('R23 5 KB are 413, also of one parameter: POST $path', async (route) => {
    for (const body of [
      `username=${'x'.repeat(5 * KB)}`,
      '%41'.repeat(2 * KB),
      `${'x'.repeat(5 * KB)}=`,
    ]) {
      const answer = await post(route, body);
      expect([answer.status, messageOf(answer)]).toEqual([413, TOO_LARGE]);
    }
  });
});

function messageOf({ body }: Answer): unknown {
  return body.detail ?? body.data ?? body.errors?.[0].message;
}

/** Returns a valid body for the route. */
async function goodBody({ path, type }: Route): Promise<string> {
  if (type === FORM_TYPE)
    return new URLSearchParams({ username: caller.username, password: PASSWORD }).toString();
  if (path === '/graphql') return '{"query":"{ me { username } }"}';
  if (path === '/session/login')
    return JSON.stringify({ username: caller.username, password: PASSWORD });
  if (path === '/api/v1/shop/product/')
    return JSON.stringify({ name: 'Pen', barcode: shop.newBarcode(), price: 1 });
  return JSON.stringify({ session_key: (await sessions.open(shop.context(), caller, null)).key });
}

/** Returns a valid body, padded to this many bytes by an unknown member. */
async function paddedBody(route: Route, length: number): Promise<string> {
  const body = await goodBody(route);
  if (route.type === FORM_TYPE) return `${body}&pad=${'x'.repeat(length - body.length - 5)}`;
  return `{"pad":"${'x'.repeat(length - body.length - 9)}",${body.slice(1)}`;
}

function post({ path, type }: Route, body: string | Buffer, encoding?: string): Promise<Answer> {
  const headers = {
    'Content-Type': type,
    ...(encoding !== undefined && { 'Content-Encoding': encoding }),
  };
  return shop.rest('POST', path, {
    as: caller,
    body: typeof body === 'string' ? body : new Uint8Array(body),
    headers,
  });
}

/** Sends pieces of a body to a route, up to `most` bytes. */
function streamed({ path, type }: Route, headers: string[], piece: () => string, most: number) {
  const lines = [
    `POST ${path} HTTP/1.1`,
    'Host: shop',
    `Authorization: Bearer ${shop.tokenOf(caller)}`,
    `Content-Type: ${type}`,
    ...headers,
  ];
  return sendTo(`${lines.join('\r\n')}\r\n\r\n`, piece, most);
}

/** Sends up to `most` bytes until the server closes; returns the response and the bytes sent. */
function sendTo(
  head: string,
  piece: () => string,
  most: number,
): Promise<{ answer: string; sent: number }> {
  return new Promise((done) => {
    let answer = '';
    let sent = 0;
    const socket = connect(shop.port, '127.0.0.1', () => {
      socket.write(head, 'latin1');
      pump();
    });
    const pump = () => {
      while (sent < most && !socket.destroyed) {
        const next = piece();
        sent += next.length;
        if (!socket.write(next, 'latin1')) return;
      }
      if (most === ENDLESS) socket.destroy();
    };
    socket.on('drain', pump);
    socket.on('data', (data: Buffer) => (answer += data.toString('latin1')));
    // A server that closes while data arrives resets the connection.
    socket.on('error', () => undefined);
    socket.on('close', () => done({ answer, sent }));
  });
}

/** Checks that the log has no error, routes without hashing work, and nothing else is stored. */
async function checkService(): Promise<void> {
  expect(shop.logged.filter((line) => (JSON.parse(line) as { level: number }).level >= 50)).toEqual(
    [],
  );
  for (const route of WITHOUT_HASH) {
    expect([200, 201]).toContain((await post(route, await goodBody(route))).status);
  }
  const [stored] = await shop.sql(
    'select count(*)::int as products from product where name <> $$Pen$$',
  );
  expect(stored).toEqual({ products: 0 });
}
