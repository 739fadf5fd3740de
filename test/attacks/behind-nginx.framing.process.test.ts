import { describe, expect, test } from '../support/jest.ts';
import { statusesOf, untilClosed, useProxiedShop } from '../support/behind-nginx.ts';
import { until } from '../support/until.ts';

// Requests that nginx and the instance could read differently, and their sizes.

const shop = useProxiedShop([['rate=50r/s', 'rate=5000r/s']]);

const POST = 'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n';
const CHUNKED = `${POST}Transfer-Encoding: chunked\r\n\r\n`;
/** A request whose id shows that the instance has read it, and nginx has not. */
const SMUGGLED =
  'GET /api/v2/shop/products HTTP/1.1\r\nHost: shop\r\nX-Request-Id: 00000000-0000-4000-8000-000000000bad\r\n\r\n';
const LAST = 'GET /livez HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const TOO_LARGE = 'The request is too large';
/** In each response of an instance, and in none of nginx itself. */
const OF_INSTANCE = /\r\nX-Request-Id: /i;

describe('boundaries between requests', () => {
  const framed = (headers: string, body = '2\r\n{}\r\n0\r\n\r\n') => `${POST}${headers}\r\n${body}`;
  const AMBIGUOUS: [string, string][] = [
    ['a length and chunks', framed('Content-Length: 4\r\nTransfer-Encoding: chunked\r\n')],
    ['chunks and a length', framed('Transfer-Encoding: chunked\r\nContent-Length: 4\r\n')],
    ['two lengths', framed('Content-Length: 2\r\nContent-Length: 40\r\n', '{}')],
    ['chunks twice', framed('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n')],
    ['a coding behind a control character', framed('Transfer-Encoding: \u000bchunked\r\n')],
    ['a space before the colon', framed('Transfer-Encoding : chunked\r\n')],
    ['a name on the next line', framed('X-A: b\r\n Content-Length: 2\r\n', '{}')],
    ['line feeds alone', framed('Content-Length: 2\r\n').replaceAll('\r\n', '\n')],
    ['a NUL in a header', framed('X-A: b\0c\r\nContent-Length: 2\r\n', '{}')],
    ['a request in the trailers', `${CHUNKED}2\r\n{}\r\n0\r\n${SMUGGLED}`],
    ['chunks longer than their size', `${CHUNKED}2\r\n{}x\r\n0\r\n\r\n`],
    ['an extension with a line feed', `${CHUNKED}2;a\n{}\r\n0\r\n\r\n`],
    ['a body that is a request', framed(`Content-Length: ${SMUGGLED.length}\r\n`, SMUGGLED)],
    ['HTTP/1.0 with chunks', CHUNKED.replace('1.1', '1.0') + '2\r\n{}\r\n0\r\n\r\n'],
    ['two Hosts', 'GET /livez HTTP/1.1\r\nHost: shop\r\nHost: evil\r\n\r\n'],
    [
      'Connection: X-Request-Id',
      'GET /livez HTTP/1.1\r\nHost: shop\r\nConnection: X-Forwarded-For, X-Request-Id\r\n\r\n',
    ],
  ];

  test.each(AMBIGUOUS)(
    'H7 each request that the instance reads is one that nginx has forwarded: %s',
    async (_what, request) => {
      const answer = await shop.raw(request + LAST);
      const statuses = statusesOf(answer);
      // Refused, or answered once beside the last request.
      expect(statuses.length).toBeLessThanOrEqual(2);
      expect(answer).not.toContain('"items"');
      await shop.expectServed();
      // nginx may log a request shortly after its client has received the response.
      await until(async () => {
        const known = await shop.nginx.logs();
        return idsOfInstance().every((id) => known.includes(id));
      }, 'the requests in the log of nginx');
      expect(idsOfInstance().length).toBe(new Set(idsOfInstance()).size);
    },
  );

  test('H7 requests in a packet are answered in order', async () => {
    const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: shop\r\n\r\n`;
    const answer = await shop.raw(get('/livez') + get('/nothing') + get('/users/me') + LAST);
    expect(statusesOf(answer)).toEqual([200, 404, 401, 200]);
  });

  test('H12 a request behind a rejected one is answered or not executed', async () => {
    const executed = () =>
      shop.logged.filter(
        ({ endpoint, status }) => String(endpoint).includes('/session/logout') && status === 422,
      ).length;
    const behind = `${POST.replace('login', 'logout')}Content-Length: 2\r\n\r\n{}`;
    const rejected = [
      `${POST}Content-Length: 200000\r\n\r\n${' '.repeat(200_000)}`,
      `${POST.replace('json', 'xml')}Content-Length: 2\r\n\r\n{}`,
      `PUT /blog HTTP/1.1\r\nHost: shop\r\nContent-Length: 2\r\n\r\n{}`,
      'GET /livez HTTP/1.1\r\n\r\n',
    ];
    let answered = 0;
    for (const first of rejected) {
      const statuses = statusesOf(await shop.raw(first + behind + LAST));
      expect(statuses[0]).toBeGreaterThanOrEqual(400);
      answered += statuses.filter((status) => status === 422).length;
    }
    await shop.expectServed();
    // The log is written with a delay.
    await until(() => executed() >= answered, 'the lines of the log');
    expect(executed()).toBe(answered);
  });
});

describe('the client that nginx names', () => {
  test('B5 its address replaces X-Forwarded-For and Forwarded', async () => {
    const localAddress = shop.newAddress();
    const headers = {
      'X-Forwarded-For': '198.51.100.7',
      Forwarded: 'for=198.51.100.7',
      'X-Real-IP': '198.51.100.7',
      ...JSON_TYPE,
    };
    await shop.send('/session/login', {
      method: 'POST',
      localAddress,
      headers,
      body: JSON.stringify({ username: 'nobody', password: 'x' }),
    });
    await until(() => shop.logged.some(({ ip }) => ip === localAddress), 'the failed login');
    expect(JSON.stringify(shop.logged)).not.toContain('198.51.100.7');
  });
});

describe('sizes', () => {
  const get = (headers: string, path = '/livez') =>
    `GET ${path} HTTP/1.1\r\nHost: shop\r\n${headers}Connection: close\r\n\r\n`;

  test.each([
    ['a header of 17 KB', get(`X-A: ${'a'.repeat(17_000)}\r\n`), 431],
    ['a name of 17 KB', get(`${'a'.repeat(17_000)}: b\r\n`), 431],
    ['headers of 40 KB', get(`X-A: ${'a'.repeat(4_000)}\r\n`.repeat(10)), 431],
    ['5,000 headers', get('a: b\r\n'.repeat(5_000)), 431],
    ['a URL of 20 KB', get('', `/${'a'.repeat(20_000)}`), 414],
  ])('H5 %s: rejected by nginx', async (_what, request, status) => {
    const answer = await shop.raw(request);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*\\{"detail":"${TOO_LARGE}"\\}$`));
    expect(answer).toMatch(/\r\nAccess-Control-Allow-Origin: \*\r\n/);
    expect(answer).not.toMatch(OF_INSTANCE);
  });

  test.each([
    ['headers of 20 KB', get(`X-A: ${'a'.repeat(4_000)}\r\n`.repeat(5)), 431],
    ['101 headers', get('a: b\r\n'.repeat(101)), 431],
    ['a token of 15 KB', get(`Authorization: Bearer ${'a'.repeat(15_000)}\r\n`, '/users/me'), 401],
  ])('H5 %s: rejected by the instance', async (_what, request, status) => {
    expect(statusesOf(await shop.raw(request))).toEqual([status]);
  });

  test.each([
    ['/session/login', { detail: TOO_LARGE }],
    ['/graphql', { errors: [{ message: TOO_LARGE, extensions: { code: 'PAYLOAD_TOO_LARGE' } }] }],
  ])('R4 a body of 1 GB is 413 before it is sent: %s', async (path, body) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n`;
    const answer = await shop.raw(`${head}Content-Length: 1073741824\r\n\r\n{`);
    expect(answer).toMatch(/^HTTP\/1\.1 413 [^]*\r\nConnection: close\r\n/);
    expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toEqual(body);
  });

  test('R4 endless chunks are 413, and do not reach the instance', async () => {
    const piece = `${(1_000).toString(16)}\r\n${'x'.repeat(1_000)}\r\n`.repeat(100);
    const socket = await shop.open();
    const answer = untilClosed(socket);
    socket.write(CHUNKED);
    const send = () => void (socket.writable && socket.write(piece, () => setImmediate(send)));
    send();
    const received = await answer;
    expect(received).toMatch(/^HTTP\/1\.1 413 [^]*"The request is too large"/);
    expect(received).not.toMatch(OF_INSTANCE);
    await shop.expectServed();
  });
});

/** Returns the ids of the requests in the log of the instance. */
function idsOfInstance(): string[] {
  return shop.logged
    .filter(({ event }) => event === 'request')
    .map(({ requestId }) => String(requestId));
}
