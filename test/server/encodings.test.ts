import { gzipSync } from 'node:zlib';
import { describe, expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop({ ANONYMOUS_SCOPES: 'products:write' });

const FORM = 'application/x-www-form-urlencoded';
const BOUNDARY = 'the-boundary-of-the-parts';
const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`;
const CREATE = '/api/v1/shop/product/';

const bytesOf = (text: string, encoding: BufferEncoding = 'utf8') =>
  new Uint8Array(Buffer.from(text, encoding));
const post = (path: string, type: string, body: Uint8Array<ArrayBuffer>, headers = {}) =>
  shop.rest('POST', path, { body, headers: { 'Content-Type': type, ...headers } });
const productOf = (name: string) => JSON.stringify({ name, barcode: shop.newBarcode(), price: 1 });
/** A multipart form. A field of three elements has further headers. */
const partsOf = (...fields: [name: string, value: string, more?: string][]) =>
  `${fields
    .map(
      ([name, value, more = '']) =>
        `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`,
    )
    .join('')}--${BOUNDARY}--\r\n`;

describe('charsets of bodies, by their labels of the Encoding Standard', () => {
  const UTF_8 = ['utf8', 'UTF8', 'Utf-8', 'unicode-1-1-utf-8', 'unicode20utf8', 'x-unicode20utf8'];
  const SPELLINGS = [
    ...UTF_8.map((label) => `charset=${label}`),
    'charset="utf8"',
    'charset="utf-8"',
    "charset='utf-8'",
    'charset=""',
    'charset=',
    'charset',
    'Charset=UTF8',
  ];

  test.each(SPELLINGS)('JSON with %s is UTF-8, on REST and GraphQL', async (parameter) => {
    const type = `application/json; ${parameter}`;
    const created = await post(CREATE, type, bytesOf(productOf('Grün €')));
    expect([created.status, created.body.name]).toEqual([201, 'Grün €']);
    const query = '{ products(filter: { search: "Grün €" }) { nodes { name } } }';
    const found = await post('/graphql', type, bytesOf(JSON.stringify({ query })));
    expect(found.body).toEqual({ data: { products: { nodes: [{ name: 'Grün €' }] } } });
  });

  test.each(['iso-8859-1', 'ISO-8859-1', 'latin1', 'windows-1252', 'cp1252', '"ISO-8859-1"'])(
    'JSON with charset=%s is windows-1252, on REST and GraphQL',
    async (label) => {
      const type = `application/json; charset=${label}`;
      const created = await post(CREATE, type, bytesOf(productOf('Gr\u00fcn \u0080'), 'latin1'));
      expect([created.status, created.body.name]).toEqual([201, 'Grün €']);
      const query = '{ products(filter: { search: "Gr\u00fcn \u0080" }) { nodes { name } } }';
      const found = await post('/graphql', type, bytesOf(JSON.stringify({ query }), 'latin1'));
      expect(found.body).toEqual({ data: { products: { nodes: [{ name: 'Grün €' }] } } });
    },
  );

  test.each(['/token', '/login'])('forms, at POST %s', async (path) => {
    const password = 'gr\u00fcn\u20ac+ %x';
    const { username } = await shop.makeUser({ username: 'z\u00fc', password });
    const escaped = new URLSearchParams({ username, password }).toString();
    const raw = `username=${username}&password=gr\u00fcn\u20ac%2B+%25x`;
    const latin = 'username=z%FC&password=gr%fcn%80%2B+%25x';
    const rawLatin = 'username=z\u00fc&password=gr\u00fcn\u0080%2b%20%25x';
    const statuses = [
      ...(await Promise.all(
        ['', ...SPELLINGS].flatMap((parameter) =>
          [escaped, raw].map((form) => post(path, `${FORM}; ${parameter}`, bytesOf(form))),
        ),
      )),
      ...(await Promise.all(
        ['ISO-8859-1', 'windows-1252'].flatMap((label) =>
          [latin, rawLatin].map((form) =>
            post(path, `${FORM}; charset=${label}`, bytesOf(form, 'latin1')),
          ),
        ),
      )),
    ].map(({ status }) => status);
    expect(statuses).toEqual(statuses.map(() => 200));
  });

  test.each(['utf-7', 'utf-16', 'utf-16le', 'utf-32', 'gbk', 'shift_jis', 'iso-8859-2', 'x'])(
    'the charset %s is 415',
    async (label) => {
      const answers = [
        await post(CREATE, `application/json; charset=${label}`, bytesOf(productOf('Pen'))),
        await post('/token', `${FORM}; charset=${label}`, bytesOf('username=a&password=b')),
        await post('/graphql', `application/json; charset=${label}`, bytesOf('{"query":"{a}"}')),
      ];
      expect(answers.map(({ status }) => status)).toEqual([415, 415, 415]);
    },
  );

  test.each(['utf8', 'utf-8'])('bytes that are not %s are 400', async (label) => {
    const body = bytesOf('{"name":"\u00fc"}', 'latin1');
    expect((await post(CREATE, `application/json; charset=${label}`, body)).status).toBe(400);
  });
});

describe('multipart/form-data', () => {
  test.each(['/token', '/login'])('is a form at POST %s', async (path) => {
    const password = 'gr\u00fcn&=%41+';
    const { username } = await shop.makeUser({ username: 'z\u00fc', password });
    const fields: [string, string][] = [
      ['username', username],
      ['password', password],
      ['grant_type', 'password'],
      ['scope', 'offline_access'],
    ];
    const body = partsOf(...fields);
    const sent = new FormData();
    for (const [name, value] of fields) sent.append(name, value);
    const answers = [
      await post(path, MULTIPART, bytesOf(body)),
      await post(path, `Multipart/Form-Data; boundary="${BOUNDARY}"`, bytesOf(body)),
      await post(path, `${MULTIPART}; charset=utf8`, bytesOf(body)),
      await post(path, `${MULTIPART}; charset=ISO-8859-1`, bytesOf(body, 'latin1')),
      await post(path, MULTIPART, new Uint8Array(gzipSync(body)), { 'Content-Encoding': 'gzip' }),
      await fetch(shop.url + path, { method: 'POST', body: sent }).then(async (answer) => ({
        status: answer.status,
        body: (await answer.json()) as object,
      })),
    ];
    for (const { status, body: token } of answers)
      expect([status, token]).toEqual([
        200,
        expect.objectContaining({ token_type: 'bearer', refresh_token: expect.any(String) }),
      ]);
  });

  test.each<[string, string, number]>([
    ['no field', `--${BOUNDARY}--\r\n`, 422],
    ['no password', partsOf(['username', 'a']), 422],
    ['two usernames', partsOf(['username', 'a'], ['username', 'b'], ['password', 'x']), 422],
    [
      'a file in place of a field',
      partsOf(['username', 'a'], ['password', 'x', '; filename="a"']),
      422,
    ],
    [
      'ten fields',
      partsOf(
        ['username', 'a'],
        ['password', 'x'],
        ...Array.from({ length: 8 }, (): [string, string] => ['more', '']),
      ),
      401,
    ],
    [
      'eleven fields',
      partsOf(
        ['username', 'a'],
        ['password', 'x'],
        ...Array.from({ length: 9 }, (): [string, string] => ['more', '']),
      ),
      413,
    ],
    ['more than 4 KB', partsOf(['username', 'a'], ['password', 'x'.repeat(4_000)]), 413],
    ['no end', partsOf(['username', 'a'], ['password', 'x']).slice(0, -BOUNDARY.length), 400],
    ['another boundary', partsOf(['username', 'a']).replaceAll(BOUNDARY, 'another'), 400],
    ['a urlencoded form', 'username=a&password=x', 400],
    ['JSON', '{"username":"a","password":"x"}', 400],
  ])('%s', async (_what, body, status) => {
    expect((await post('/token', MULTIPART, bytesOf(body))).status).toBe(status);
  });

  test.each<[string, string, number]>([
    ['without a boundary', 'multipart/form-data', 400],
    ['of another kind', 'multipart/mixed; boundary=x', 415],
    ['in UTF-16', `${MULTIPART}; charset=utf-16`, 415],
  ])('%s', async (_what, type, status) => {
    const body = bytesOf(partsOf(['username', 'a'], ['password', 'x']));
    expect((await post('/token', type, body)).status).toBe(status);
  });

  test.each(['/session/login', '/session/logout', '/api/v2/auth/login', CREATE, '/graphql'])(
    'is 415 at POST %s, which takes JSON',
    async (path) => {
      const body = bytesOf(partsOf(['username', 'a'], ['query', '{ __typename }']));
      expect((await post(path, MULTIPART, body)).status).toBe(415);
    },
  );
});

describe('Content-Encoding', () => {
  const JSON_TYPE = 'application/json';

  test.each(['gzip', 'x-gzip', 'X-GZIP', 'GZip', 'identity, gzip', 'gzip,', ' gzip , identity'])(
    '%s is gzip (RFC 9110, 8.4.1.3)',
    async (encoding) => {
      const body = new Uint8Array(gzipSync(productOf('Pen')));
      const headers = { 'Content-Encoding': encoding };
      expect((await post(CREATE, JSON_TYPE, body, headers)).status).toBe(201);
    },
  );

  test.each(['identity', 'Identity', 'identity, identity'])('%s is none', async (encoding) => {
    const headers = { 'Content-Encoding': encoding };
    expect((await post(CREATE, JSON_TYPE, bytesOf(productOf('Pen')), headers)).status).toBe(201);
  });

  test.each(['br', 'x-compress', 'gzip, gzip', 'x-gzip, deflate', 'x-deflate', 'gzip;q=1'])(
    '%s is 415, which names the supported ones',
    async (encoding) => {
      const body = new Uint8Array(gzipSync(productOf('Pen')));
      const answer = await post(CREATE, JSON_TYPE, body, { 'Content-Encoding': encoding });
      expect([answer.status, answer.headers.get('Accept-Encoding')]).toEqual([
        415,
        'gzip, deflate',
      ]);
    },
  );

  test('the decoded size is limited', async () => {
    const body = new Uint8Array(gzipSync(productOf('x'.repeat(20_000))));
    const answer = await post(CREATE, JSON_TYPE, body, { 'Content-Encoding': 'x-gzip' });
    expect(answer.status).toBe(413);
  });
});
