import { connect } from 'node:net';
import { afterEach, describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';
import { unreadable } from '../support/unreadable.ts';

const shop = useShop();

const POST = 'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n';
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
/** A smuggled request: a proxy may read it as a part of the request before it. */
const SMUGGLED = 'GET /api/v2/shop/products HTTP/1.1\r\nHost: shop\r\n\r\n';
const LAST = 'GET /livez HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n';

afterEach(async () => {
  // A valid request succeeds after every test.
  const { status } = await shop.rest('GET', '/readyz');
  if (status !== 200) throw new Error(`the shop responds with ${status}`);
});

describe('boundaries between requests', () => {
  test.each([
    [
      'a length and chunks',
      `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'chunks and a length',
      `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'chunks and a length of 0',
      `${POST}Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n`,
    ],
    ['two lengths that differ', `${POST}Content-Length: 2\r\nContent-Length: 40\r\n\r\n{}`],
    ['two lengths that are the same', `${POST}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}`],
    ['two lengths in one line', `${POST}Content-Length: 2, 2\r\n\r\n{}`],
    ['a length with a sign', `${POST}Content-Length: +2\r\n\r\n{}`],
    ['a negative length', `${POST}Content-Length: -2\r\n\r\n{}`],
    ['a length that is no number', `${POST}Content-Length: x\r\n\r\n{}`],
    ['a hexadecimal length', `${POST}Content-Length: 0x2\r\n\r\n{}`],
    ['a length with an exponent', `${POST}Content-Length: 2e0\r\n\r\n{}`],
    ['a length with a fraction', `${POST}Content-Length: 2.0\r\n\r\n{}`],
    ['a length with a space', `${POST}Content-Length: 2 0\r\n\r\n{}`],
    ['an empty length', `${POST}Content-Length:\r\n\r\n{}`],
    ['a length beyond 64 bits', `${POST}Content-Length: 18446744073709551618\r\n\r\n{}`],
    ['a length in other digits', `${POST}Content-Length: \u00b2\r\n\r\n{}`],
    [
      'chunks twice',
      `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'chunks twice in one line',
      `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'chunks that are not the last coding',
      `${POST}Transfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'a coding that only ends like chunks',
      `${POST}Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'a coding that only begins like chunks',
      `${POST}Transfer-Encoding: chunked;q=1x\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'a coding in quotation marks',
      `${POST}Transfer-Encoding: "chunked"\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    [
      'a coding behind a control character',
      `${POST}Transfer-Encoding: \u000bchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    ['another coding alone', `${POST}Transfer-Encoding: identity\r\n\r\n{}`],
    ['a space before the colon', `${POST}Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`],
    ['a tab before the colon', `${POST}Content-Length\t: 2\r\n\r\n{}`],
    ['a name on the next line', `${POST}X-A: b\r\n Content-Length: 2\r\n\r\n{}`],
    [
      'a value on the next line',
      `${POST}Transfer-Encoding:\r\n chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    ],
    ['a space before the first header', 'GET /livez HTTP/1.1\r\n Host: shop\r\n\r\n'],
    ['a header without a colon', `${POST}Content-Length\r\n\r\n`],
    ['a header without a name', `${POST}: 2\r\n\r\n`],
    ['line feeds alone', POST.replaceAll('\r\n', '\n')],
    ['a line feed alone after a header', `${POST}X-A: b\nContent-Length: 2\r\n\r\n{}`],
    ['a carriage return alone after a header', `${POST}X-A: b\rContent-Length: 2\r\n\r\n{}`],
    ['a NUL in a header', `${POST}X-A: b\0c\r\nContent-Length: 2\r\n\r\n{}`],
    ['a length in the trailers', `${CHUNKED}2\r\n{}\r\n0\r\nContent-Length: 99\r\n\r\n`],
    ['chunks whose size exceeds 64 bits', `${CHUNKED}10000000000000002\r\n{}\r\n0\r\n\r\n`],
    ['chunks whose size has a sign', `${CHUNKED}-2\r\n{}\r\n0\r\n\r\n`],
    ['chunks whose size has a prefix', `${CHUNKED}0x2\r\n{}\r\n0\r\n\r\n`],
    ['chunks whose size has an underscore', `${CHUNKED}0_2\r\n{}\r\n0\r\n\r\n`],
    ['chunks whose size is missing', `${CHUNKED}\r\n{}\r\n0\r\n\r\n`],
    ['chunks longer than their size', `${CHUNKED}2\r\n{}x\r\n0\r\n\r\n`],
    ['chunks shorter than their size', `${CHUNKED}5\r\n{}\r\n0\r\n\r\n`],
    ['chunks that end in line feeds', `${CHUNKED}2\n{}\n0\n\n`],
    ['an extension of a chunk that ends in a line feed', `${CHUNKED}2;a\n{}\r\n0\r\n\r\n`],
    ['an extension of a chunk with a carriage return in it', `${CHUNKED}2;a\rb\r\n{}\r\n0\r\n\r\n`],
  ])(
    'H7 an ambiguous request is 400, and nothing behind it is answered: %s',
    async (_what, request) => {
      // Nothing behind the request may be read as a request.
      const { answer, statements } = await recordStatements(() =>
        shop.raw(request + SMUGGLED + LAST),
      );
      expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
      expect(answer).toMatch(/\r\nConnection: close\r\n/);
      expect(statuses(answer)).toEqual([400]);
      expect(answer).not.toMatch(/"items"|"status"/);
      expect(statements).toEqual([]);
    },
  );

  test('H7 a too long chunk extension is rejected, and nothing behind it is answered', async () => {
    const answer = await shop.raw(`${CHUNKED}2;${'a'.repeat(20_000)}\r\n{}\r\n0\r\n\r\n${LAST}`);
    expect(statuses(answer)).toEqual([413]);
  });

  test.each<[string, string, number]>([
    ['a length', `${POST}Content-Length: 2\r\n\r\n{}`, 422],
    ['a length with space around it', `${POST}Content-Length: \t 2 \t\r\n\r\n{}`, 422],
    ['a length with zeros before it', `${POST}Content-Length: 0002\r\n\r\n{}`, 422],
    ['no length, and no body', `${POST}\r\n`, 422],
    ['chunks', `${CHUNKED}1\r\n{\r\n1\r\n}\r\n0\r\n\r\n`, 422],
    ['chunks in upper case', `${POST}Transfer-Encoding: CHUNKED\r\n\r\n2\r\n{}\r\n0\r\n\r\n`, 422],
    ['chunks with an extension', `${CHUNKED}2;a=b;c="d"\r\n{}\r\n0;e\r\n\r\n`, 422],
    ['chunks whose size has zeros before it', `${CHUNKED}0002\r\n{}\r\n000\r\n\r\n`, 422],
    [
      'trailers that would be headers',
      `${CHUNKED}2\r\n{}\r\n0\r\nHost: evil\r\nAuthorization: Bearer x\r\n\r\n`,
      422,
    ],
    [
      'chunks that contain a request',
      `${CHUNKED}${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`,
      400,
    ],
    [
      'a body that is a request',
      `${POST}Content-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`,
      400,
    ],
    ['empty lines before it', `\r\n\r\n${POST}Content-Length: 2\r\n\r\n{}`, 422],
  ])(
    'H7 an unambiguous request gets one response, and so does the next: %s',
    async (_what, request, status) => {
      const answer = await shop.raw(request + LAST);
      expect(statuses(answer)).toEqual([status, 200]);
      expect(answer).not.toContain('"items"');
      expect(answer.endsWith('{"status":"ok"}')).toBe(true);
    },
  );

  test.each<[string, string]>([
    ['GET', 'GET /livez HTTP/1.1\r\nHost: shop\r\n'],
    ['HEAD', 'HEAD /livez HTTP/1.1\r\nHost: shop\r\n'],
    ['OPTIONS', 'OPTIONS /token HTTP/1.1\r\nHost: shop\r\n'],
    ['DELETE', 'DELETE /blog HTTP/1.1\r\nHost: shop\r\n'],
    ['GET of an unknown path', 'GET /nothing HTTP/1.1\r\nHost: shop\r\n'],
    ['GET without credentials', 'GET /users/me/ HTTP/1.1\r\nHost: shop\r\n'],
    [
      'POST of another type',
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: text/plain\r\n',
    ],
    [
      'POST without credentials',
      'POST /api/v1/shop/product/ HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n',
    ],
    [
      'POST to GraphQL with wrong credentials',
      'POST /graphql HTTP/1.1\r\nHost: shop\r\nContent-Type: text/plain\r\nAuthorization: Bearer x\r\n',
    ],
    [
      'a POST with an unknown expectation',
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nExpect: 42\r\n',
    ],
  ])('H7 an unread body is never read as the next request: %s', async (_what, head) => {
    const body = SMUGGLED;
    for (const framed of [
      `Content-Length: ${body.length}\r\n\r\n${body}`,
      `Transfer-Encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
    ]) {
      const answer = await shop.raw(head + framed + LAST);
      expect(answer).not.toContain('"items"');
      // Either the body was skipped, or the response closes the connection.
      const isOver = statuses(answer).length === 1 && answer.includes('\r\nConnection: close\r\n');
      const isNext = statuses(answer).length === 2 && answer.endsWith('{"status":"ok"}');
      expect([isOver, isNext]).toContain(true);
    }
  });

  test('H7 pipelined requests are answered in order', async () => {
    await shop.makeProducts(3);
    const paths = [
      '/api/v1/shop/product/1',
      '/nothing',
      '/api/v1/shop/product/2',
      '/users/me',
      '/api/v1/shop/product/3',
    ];
    const answer = await shop.raw(
      paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`).join('') + LAST,
    );
    expect(statuses(answer)).toEqual([200, 404, 200, 401, 200, 200]);
    expect([...answer.matchAll(/"pk":(\d)/g)].map(([, pk]) => pk)).toEqual(['1', '2', '3']);
  });

  test.each([
    ['H12 pages', '/api/v1/shop/products'],
    ['P17 files', '/favicon.ico'],
  ])(
    '%s that one connection requests hundreds of times and never reads block no others',
    async (_what, path) => {
      await shop.makeProducts(3);
      const socket = connect(shop.port, '127.0.0.1').pause();
      socket.on('error', () => undefined);
      socket.write(`GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`.repeat(500));
      await new Promise((done) => setTimeout(done, 100));
      expect((await shop.rest('GET', '/api/v2/shop/products')).status).toBe(200);
      socket.destroy();
    },
  );

  test('H7 credentials apply to one request, not to the next on the same connection', async () => {
    const token = shop.tokenOf(await shop.makeUser());
    const request = (header: string) => `GET /users/me/ HTTP/1.1\r\nHost: shop\r\n${header}\r\n`;
    const answer = await shop.raw(
      request(`Authorization: Bearer ${token}\r\n`) +
        request('') +
        request(`Authorization: Bearer ${token}\r\n`) +
        LAST,
    );
    expect(statuses(answer)).toEqual([200, 401, 200, 200]);
  });
});

describe('Host', () => {
  const request = (line: string, hosts: string) =>
    `${line} HTTP/1.1\r\n${hosts}Connection: close\r\n\r\n`;
  const LINES = [
    'GET /livez',
    'GET /api/v2/shop/products',
    'GET /users/me/',
    'GET /nothing',
    'OPTIONS /token',
    'HEAD /livez',
    'POST /graphql',
    'GET /graphql',
    'PUT /blog',
  ];

  test.each(LINES)('H7 %s without Host is 400', async (line) => {
    expect(statuses(await shop.raw(request(line, '')))).toEqual([400]);
  });

  test.each(LINES)('H7 %s with two Hosts is 400, equal or not, in any case', async (line) => {
    for (const hosts of [
      'Host: a\r\nHost: b\r\n',
      'Host: shop\r\nHost: shop\r\n',
      'Host: shop\r\nX-A: b\r\nhOsT: evil\r\n',
      'Host: shop\r\nHost:\r\n',
    ])
      expect([hosts, statuses(await shop.raw(request(line, hosts)))]).toEqual([hosts, [400]]);
  });

  // RFC 9112, 3.2: an invalid value is rejected like a missing one.
  test.each([
    'a, b',
    'a b',
    'a/b',
    'user@shop',
    'a\\b',
    'shop:80:80',
    'shop:port',
    '<script>',
    'a?b',
    'a#b',
    '[::1',
  ])('H7 the Host "%s" is invalid: 400', async (host) => {
    expect(statuses(await shop.raw(request('GET /livez', `Host: ${host}\r\n`)))).toEqual([400]);
  });

  test.each([
    'shop',
    'shop.example',
    'shop.example:80',
    'SHOP.example.',
    '127.0.0.1:4000',
    '[::1]',
    '[::1]:4000',
    'xn--kse-qla.example',
    'my_service',
    '',
  ])('H7 the Host "%s" is valid', async (host) => {
    expect(statuses(await shop.raw(request('GET /livez', `Host: ${host}\r\n`)))).toEqual([200]);
  });

  test('H7 HTTP/1.0 needs no Host', async () => {
    expect(statuses(await shop.raw('GET /livez HTTP/1.0\r\n\r\n'))).toEqual([200]);
  });
});

describe('other protocols', () => {
  test.each([
    ['TLS', '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003'],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/3.0', 'GET /livez HTTP/3.0\r\nHost: shop\r\n\r\n'],
    ['HTTP/1.2', 'GET /livez HTTP/1.2\r\nHost: shop\r\n\r\n'],
    ['an invalid version', 'GET /livez HTTP/x\r\nHost: shop\r\n\r\n'],
    ['a version with a two-digit minor', 'GET /livez HTTP/1.10\r\nHost: shop\r\n\r\n'],
    ['another protocol name', 'GET /livez SHTTP/1.1\r\nHost: shop\r\n\r\n'],
    ['SSH', 'SSH-2.0-x\r\n'],
    ['SMTP', 'HELO shop\r\n'],
    ['PostgreSQL', '\0\0\0\u0008\u0004\u00d2\u0016\u002f'],
    ['Redis', '*1\r\n$4\r\nPING\r\n'],
    [
      'the PROXY protocol',
      'PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nGET /livez HTTP/1.1\r\nHost: shop\r\n\r\n',
    ],
  ])('H7 %s is rejected with 400, and the connection is closed', async (_what, bytes) => {
    const answer = await shop.raw(bytes);
    expect(answer).toBe(unreadable('400 Bad Request'));
  });

  test.each([
    [
      'h2c',
      'Connection: close, Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n',
    ],
    ['h2c without Connection: Upgrade', 'Upgrade: h2c\r\n'],
    [
      'websocket',
      'Connection: close, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n',
    ],
    ['TLS', 'Connection: close, Upgrade\r\nUpgrade: TLS/1.0\r\n'],
    ['anything', 'Connection: close, Upgrade\r\nUpgrade: *\r\n'],
  ])('H7 an Upgrade to %s is ignored, and bypasses no check', async (_what, headers) => {
    await shop.makeUser({ email: 'canary@shop.example' });
    const answer = await shop.raw(`GET /users/me/ HTTP/1.1\r\nHost: shop\r\n${headers}\r\n${LAST}`);
    // The next request is answered as HTTP, or not at all.
    expect([[401], [401, 200]]).toContainEqual(statuses(answer));
    expect(answer).not.toMatch(/Upgrade|canary/);
  });

  test.each(['127.0.0.1:5432', 'evil.example:443', '/users/me/', 'localhost:22', '*', ':'])(
    'H7 CONNECT %s opens no tunnel',
    async (target) => {
      const answer = await shop.raw(`CONNECT ${target} HTTP/1.1\r\nHost: shop\r\n\r\n${SMUGGLED}`);
      expect(answer).not.toMatch(/^HTTP\/1\.\d 2|"items"|"username"/);
    },
  );

  test('H7 chunks in HTTP/1.0, which has none, get one response, and the connection is closed', async () => {
    const answer = await shop.raw(
      `${CHUNKED.replace('1.1', '1.0')}2\r\n{}\r\n0\r\n\r\n${SMUGGLED}`,
    );
    expect(statuses(answer)).toHaveLength(1);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
  });
});

describe('size', () => {
  test.each<[string, string]>([
    [
      'a header of 16,385 bytes',
      `GET /livez HTTP/1.1\r\nHost: shop\r\nX-A: ${'a'.repeat(16_385)}\r\n\r\n`,
    ],
    [
      'a name of 16,385 bytes',
      `GET /livez HTTP/1.1\r\nHost: shop\r\n${'a'.repeat(16_385)}: b\r\n\r\n`,
    ],
    [
      'a token of 16,385 bytes',
      `GET /users/me/ HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${'a'.repeat(16_385)}\r\n\r\n`,
    ],
    [
      'many headers of 16,385 bytes together',
      `GET /livez HTTP/1.1\r\nHost: shop\r\n${`X-A: ${'a'.repeat(1_000)}\r\n`.repeat(17)}\r\n`,
    ],
    ['102 headers', `GET /livez HTTP/1.1\r\nHost: shop\r\n${'a:\r\n'.repeat(101)}\r\n`],
    ['2,500 headers', `GET /livez HTTP/1.1\r\nHost: shop\r\n${'a:\r\n'.repeat(2_499)}\r\n`],
    [
      '1,000 long headers',
      `GET /livez HTTP/1.1\r\nHost: shop\r\n${`X-Abcdefgh: ${'a'.repeat(10)}\r\n`.repeat(1_000)}\r\n`,
    ],
    ['a URL of 20 KB', `GET /${'a'.repeat(20_480)} HTTP/1.1\r\nHost: shop\r\n\r\n`],
    ['a query of 20 KB', `GET /livez?${'a'.repeat(20_480)} HTTP/1.1\r\nHost: shop\r\n\r\n`],
    ['trailers of 20 KB', `${CHUNKED}2\r\n{}\r\n0\r\nX-A: ${'a'.repeat(20_480)}\r\n\r\n`],
  ])('H5 %s: 431 without a body, and the connection is closed', async (_what, request) => {
    const { answer, statements } = await recordStatements(() => shop.raw(request + LAST));
    expect(answer).toBe(unreadable('431 Request Header Fields Too Large'));
    expect(statements).toEqual([]);
  });

  test('H5 101 headers: 431, and the connection is closed', async () => {
    const answer = await shop.raw(
      `GET /livez HTTP/1.1\r\nHost: shop\r\n${'a:\r\n'.repeat(100)}\r\n${LAST}`,
    );
    expect(statuses(answer)).toEqual([431]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
  });

  test('H5 100 headers, or headers of nearly 16 KB, are accepted', async () => {
    const lines = Array.from({ length: 98 }, (_, at) => `X-${at}: a\r\n`).join('');
    expect(
      statuses(
        await shop.raw(`GET /livez HTTP/1.1\r\nHost: shop\r\n${lines}Connection: close\r\n\r\n`),
      ),
    ).toEqual([200]);
    expect(
      statuses(
        await shop.raw(
          `GET /livez HTTP/1.1\r\nHost: shop\r\nX-A: ${'a'.repeat(15_000)}\r\nConnection: close\r\n\r\n`,
        ),
      ),
    ).toEqual([200]);
  });
});

/** Returns the statuses of all responses, in order. */
function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.[01] (\d{3}) /g)].map(([, status]) => Number(status));
}
