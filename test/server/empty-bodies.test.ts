import { describe, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const shop = useShop({ ANONYMOUS_SCOPES: 'products:write' });

const V2_LOGIN = '/api/v2/auth/login';
const CHUNKED = 'Transfer-Encoding: chunked';

/** Framings of an empty body (RFC 9112, 6), as a header and the bytes that follow the headers. */
const FRAMINGS: [string, string][] = [
  ['', ''],
  ['Content-Length: 0', ''],
  ['Content-Length: 00', ''],
  [CHUNKED, '0\r\n\r\n'],
  [CHUNKED, '000;a=b\r\n\r\n'],
  [CHUNKED, '0\r\nX-Trailer: 1\r\n\r\n'],
];
const TYPES = [
  '',
  'Content-Type: application/json',
  'Content-Type: application/x-www-form-urlencoded',
  'Content-Type: multipart/form-data; boundary=x',
  'Content-Type: text/plain; charset=utf-7',
  'Content-Encoding: br',
  'Content-Type: application/json\r\nContent-Encoding: gzip',
];
const WAYS = FRAMINGS.flatMap(([framing, bytes]) =>
  TYPES.map((type): [string, string, string] => [framing, type, bytes]),
);

/** Sends a request; returns the status and the body. */
async function send(path: string, lines: string[], body: string): Promise<[number, unknown]> {
  const head = [`POST ${path} HTTP/1.1`, 'Host: shop', 'Connection: close', ...lines];
  const answer = await shop.raw(
    `${head.filter((line) => line !== '').join('\r\n')}\r\n\r\n${body}`,
  );
  const [, status = '', text = ''] = /^HTTP\/1\.1 (\d+) .*?\r\n\r\n(.*)$/s.exec(answer) ?? [];
  return [Number(status), JSON.parse(text)];
}

async function sessionKey(): Promise<string> {
  const { username } = await shop.makeUser();
  const json = { username, password: PASSWORD };
  return String((await shop.rest('POST', '/session/login', { json })).body.session_key);
}

const missing = (...fields: string[]) =>
  fields.map((field) => ({ type: 'missing', loc: ['body', field], msg: 'Field required' }));

describe('an empty body is the same in every framing and of every type', () => {
  test.each(WAYS)('a logout: %j, %j, %j', async (framing, type, bytes) => {
    const key = await sessionKey();
    expect(await send(V2_LOGIN, [`X-SESSION-ID: ${key}`, framing, type], bytes)).toEqual([
      200,
      { detail: 'Logout successful', data: 'Logout successful' },
    ]);
    expect((await shop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(401);
  });

  const ENDPOINTS: [string, number, unknown][] = [
    ['/session/login', 422, { detail: missing('username', 'password') }],
    ['/session/logout', 422, { detail: missing('session_key') }],
    ['/token', 422, { detail: missing('username', 'password') }],
    ['/login', 422, { detail: missing('username', 'password') }],
    ['/api/v1/shop/product/', 422, { detail: missing('name', 'barcode', 'price') }],
    [V2_LOGIN, 401, { detail: 'Not authenticated' }],
    [
      '/graphql',
      400,
      {
        errors: [
          {
            message: 'POST body missing, invalid Content-Type, or JSON object has no keys.',
            extensions: { code: 'BAD_REQUEST' },
          },
        ],
      },
    ],
  ];
  test.each(ENDPOINTS)('POST %s without a body', async (path, status, error) => {
    const answers: [number, unknown][] = [];
    for (const [framing, type, bytes] of WAYS)
      answers.push(await send(path, [framing, type], bytes));
    const [first] = answers;
    expect(first).toEqual([status, expect.objectContaining(error as object)]);
    expect(answers).toEqual(answers.map(() => first));
  });

  test('a subscription over server-sent events', async () => {
    const answers: [number, unknown][] = [];
    for (const [framing, type, bytes] of WAYS)
      answers.push(await send('/graphql', ['Accept: text/event-stream', framing, type], bytes));
    expect(answers[0]?.[0]).toBe(400);
    expect(answers).toEqual(answers.map(() => answers[0]));
  });

  test('chunks that are not empty still need a content type', async () => {
    for (const path of [V2_LOGIN, '/token', '/graphql'])
      expect((await send(path, [CHUNKED], '2\r\n{}\r\n0\r\n\r\n'))[0]).toBe(415);
  });
});

describe('JSON null', () => {
  const JSON_TYPE = 'Content-Type: application/json';

  test.each(['null', ' null\r\n', '\ufeffnull'])(
    'where a body is optional, %j counts as no body: a logout',
    async (body) => {
      const key = await sessionKey();
      const headers = { 'Content-Type': 'application/json' };
      const answer = await shop.rest('POST', V2_LOGIN, { sessionKey: key, body, headers });
      expect([answer.status, answer.body.detail]).toEqual([200, 'Logout successful']);
      expect((await shop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(401);
    },
  );

  test.each(['/session/login', '/session/logout', '/api/v1/shop/product/', '/graphql'])(
    'where a body is required, it is 400: POST %s',
    async (path) => {
      expect((await send(path, [JSON_TYPE, 'Content-Length: 4'], 'null'))[0]).toBe(400);
    },
  );

  test.each(['true', '0', '"null"', 'nul', 'NULL', 'null null'])(
    'no other JSON counts as no body: %s',
    async (body) => {
      const headers = { 'Content-Type': 'application/json' };
      const answer = await shop.rest('POST', V2_LOGIN, {
        sessionKey: await sessionKey(),
        body,
        headers,
      });
      expect(answer.status).toBe(400);
    },
  );
});
