import { describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type RequestOptions } from '../support/shop.ts';
import { unreadable } from '../support/unreadable.ts';

const CREATE = '/api/v1/shop/product/';
const JSON_TYPE = { 'Content-Type': 'application/json' };
const FORM_TYPE = { 'Content-Type': 'application/x-www-form-urlencoded' };

const UNREADABLE = 'The request cannot be read';
const TOO_LARGE = 'The request is too large';
const NOT_JSON = 'The content type must be application/json in UTF-8';
const NOT_A_FORM = 'The content type must be application/x-www-form-urlencoded in UTF-8';

const KB = 1024;
const LONGEST_JSON = 16 * KB;

const shop = useShop();

type Body = string | Uint8Array<ArrayBuffer>;

/** The endpoints that take JSON, and the member of their errors that has the message. */
const JSON_ENDPOINTS = [
  [CREATE, 'detail'],
  ['/session/login', 'data'],
  ['/session/logout', 'data'],
  ['/api/v2/auth/login', 'data'],
] as const;

const FORM_ENDPOINTS = ['/token', '/login'];

describe('a JSON body that cannot be read', () => {
  const UNPARSABLE: [string, Body][] = [
    ['with a raw line break in a text', '{"name":"P\nen"}'],
    ['that is a form', 'username=alice&password=x'],
    ['that is XML', '<name>Pen</name>'],
    ['that is binary', Uint8Array.of(0x89, 0x50, 0x4e, 0x47)],
  ];

  test.each(UNPARSABLE)('R1 a body %s is 400', async (_what, body) => {
    expect(await toAllJsonEndpoints({ body, headers: JSON_TYPE })).toEqual(
      rejectedByAll(400, UNREADABLE),
    );
  });

  test.each<[string, RequestOptions]>([
    ['no body', {}],
    ['no body, with a content type', { headers: JSON_TYPE }],
    ['an empty object', { json: {} }],
    ['an empty object and space', { body: ' \r\n{\t} ', headers: JSON_TYPE }],
    [
      'an object with other members',
      { json: { Name: 'Pen', 'name ': 'Pen', product: { name: 'Pen' } } },
    ],
  ])('R2 %s lacks every field', async (_what, request) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    expect(await post(CREATE, { as, ...request })).toEqual(
      rejected(422, missing('name', 'barcode', 'price')),
    );
    expect(await post('/session/login', request)).toEqual(
      rejected(422, missing('username', 'password')),
    );
    expect(await post('/session/logout', request)).toEqual(rejected(422, missing('session_key')));
    expect(await create(as)).toBe(201);
  });
});

describe('content type and charset', () => {
  test.each([
    ['none', {}],
    ['empty', { 'Content-Type': '' }],
    ['a subtype of JSON', { 'Content-Type': 'application/vnd.api+json' }],
    ['a form', FORM_TYPE],
    ['an invalid type', { 'Content-Type': 'json' }],
  ])('R3 JSON sent with this content type is 415: %s', async (_what, headers) => {
    expect(await toAllJsonEndpoints({ body: bytes('{}'), headers })).toEqual(
      rejectedByAll(415, NOT_JSON),
    );
  });

  test.each([
    'utf-7',
    'utf-16',
    'UTF-16LE',
    'utf-32',
    'latin1',
    'iso-8859-1',
    'windows-1252',
    'us-ascii',
    'x-user-defined',
    '""',
  ])('R3 JSON in the charset %s is 415', async (charset) => {
    expect(
      await toAllJsonEndpoints({
        body: '{}',
        headers: { 'Content-Type': `application/json; charset=${charset}` },
      }),
    ).toEqual(rejectedByAll(415, NOT_JSON));
  });

  test.each([
    'application/json; charset=utf-8',
    'application/json; charset=UTF-8',
    'application/json;charset=Utf-8',
    'application/json; charset="utf-8"',
    'Application/JSON',
    'application/json; profile=x',
  ])('R3 %s is JSON in UTF-8', async (type) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const body = JSON.stringify({ name: 'Grün €', barcode: '4006381333931', price: 1 });
    const answer = await shop.rest('POST', CREATE, { as, body, headers: { 'Content-Type': type } });
    expect([answer.status, answer.body.name]).toEqual([201, 'Grün €']);
  });

  test.each(FORM_ENDPOINTS)('W8 a login by token takes forms alone: POST %s', async (path) => {
    const { username } = await shop.makeUser();
    const body = bytes(new URLSearchParams({ username, password: PASSWORD }).toString());
    for (const headers of [
      {},
      JSON_TYPE,
      { 'Content-Type': 'text/plain' },
      { 'Content-Type': 'multipart/form-data; boundary=x' },
      { 'Content-Type': 'application/x-www-form-urlencoded; charset=iso-8859-1' },
      { 'Content-Type': 'application/x-www-form-urlencoded; charset=utf-16' },
    ])
      expect(await post(path, { body, headers })).toEqual(rejected(415, { detail: NOT_A_FORM }));
    const served = await shop.rest('POST', path, {
      body,
      headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=UTF-8' },
    });
    expect(served.status).toBe(200);
  });

  test('W8 the session router takes JSON alone', async () => {
    const { username } = await shop.makeUser();
    const form = new URLSearchParams({ username, password: PASSWORD }).toString();
    expect(await post('/session/login', { body: form, headers: FORM_TYPE })).toEqual(
      rejected(415, { data: NOT_JSON }),
    );
  });
});

describe('size', () => {
  test('R4 the size is counted in bytes', async () => {
    expect(
      await toAllJsonEndpoints({
        body: `{"pad":"${'é'.repeat(LONGEST_JSON / 2)}"}`,
        headers: JSON_TYPE,
      }),
    ).toEqual(rejectedByAll(413, TOO_LARGE));
  });

  test('R4 an endless body is rejected once it is too large, and the connection is closed', async () => {
    const head =
      'POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const chunk = `400\r\n${' '.repeat(KB)}\r\n`;
    const answer = await shop.raw(head + chunk.repeat(20));
    expect(readRaw(answer)).toEqual([413, { data: TOO_LARGE }]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(await signIn(await shop.makeUser())).toBe(200);
  });

  test.each(FORM_ENDPOINTS)(
    'R23 ten parameters are read, and eleven are 413: POST %s',
    async (path) => {
      const { username } = await shop.makeUser();
      const form = (count: number) => {
        const more = Array.from({ length: count - 2 }, (_, index): [string, string] => [
          `more${index}`,
          'x',
        ]);
        return new URLSearchParams([
          ['username', username],
          ['password', PASSWORD],
          ...more,
        ]).toString();
      };
      expect(await post(path, { body: form(11), headers: FORM_TYPE })).toEqual(
        rejected(413, { detail: TOO_LARGE }),
      );
      expect((await shop.rest('POST', path, { body: form(10), headers: FORM_TYPE })).status).toBe(
        200,
      );
    },
  );
});

describe('members of a JSON object', () => {
  const GOOD = '"name":"Pen","barcode":"4006381333931","price":1';

  test.each<[string, string, object]>([
    ['name', `{"name":"First",${GOOD}}`, { name: 'Pen' }],
    ['barcode, the first one wrong', `{"barcode":"1",${GOOD}}`, { barcode: '4006381333931' }],
    ['price, the first one wrong', `{"price":-1,${GOOD}}`, { price: 1 }],
    ['price, the first one of too many digits', `{"price":0.1234,${GOOD},"price":2}`, { price: 2 }],
    ['name, once with an escape', `{${GOOD},"na\\u006de":"Last"}`, { name: 'Last' }],
  ])(
    'R8 the last of two with the same name is checked and stored: %s',
    async (_what, body, stored) => {
      const as = await shop.makeUser({ scopes: ['products:write'] });
      const answer = await shop.rest('POST', CREATE, { as, body, headers: JSON_TYPE });
      expect(answer.status).toBe(201);
      expect(answer.body).toMatchObject(stored);
      expect(await shop.sql('select name, barcode, price::float8 as price from product')).toEqual([
        { name: answer.body.name, barcode: answer.body.barcode, price: answer.body.price },
      ]);
    },
  );

  test('R10 unknown members are ignored, and never stored', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const extra = {
      pk: 999_999,
      id: 'x',
      createdAt: '2001-01-01T00:00:00Z',
      created_at: '2001-01-01T00:00:00Z',
      nameKey: 'x',
      name_key: 'x',
      hashed_password: 'x',
      disabled: true,
      $set: { price: 0 },
    };
    const json = { ...extra, name: 'Pen', barcode: '4006381333931', price: 1 };
    const answer = await shop.rest('POST', CREATE, { as, json });
    expect([answer.status, answer.body]).toEqual([
      201,
      { pk: 1, name: 'Pen', barcode: '4006381333931', price: 1 },
    ]);
    const [row] = await shop.sql(
      'select pk, name_key, extract(year from created_at)::int as year from product',
    );
    expect(row).toEqual({ pk: 1, name_key: 'pen', year: shop.now().getUTCFullYear() });
  });

  test('R10 unknown members change nothing at a login', async () => {
    const user = await shop.makeUser();
    const json = {
      username: user.username,
      password: PASSWORD,
      scopes: ['products:write'],
      sid: 'x',
      user_pk: 999,
      userPk: 999,
      expires_at: 'x',
    };
    expect((await shop.rest('POST', '/session/login', { json })).status).toBe(200);
    expect(await shop.sql('select user_pk, scopes from session')).toEqual([
      { user_pk: user.pk, scopes: null },
    ]);
    expect(await shop.sql('select scopes, disabled from "user"')).toEqual([
      { scopes: [], disabled: false },
    ]);
  });

  test.each([
    '{"__proto__":{"name":"Pen","barcode":"4006381333931","price":1}}',
    '{"constructor":{"prototype":{"name":"Pen","barcode":"4006381333931","price":1}}}',
    '{"prototype":{"name":"Pen","barcode":"4006381333931","price":1}}',
  ])('R21 %s is an object without fields', async (body) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    expect(await post(CREATE, { as, body, headers: JSON_TYPE })).toEqual(
      rejected(422, missing('name', 'barcode', 'price')),
    );
    expect(inheritedNames()).toEqual([]);
  });

  test('R21 a login does not take its fields from the prototype either', async () => {
    const { username } = await shop.makeUser();
    const body = `{"__proto__":${JSON.stringify({ username, password: PASSWORD })}}`;
    expect(await post('/session/login', { body, headers: JSON_TYPE })).toEqual(
      rejected(422, missing('username', 'password')),
    );
    expect(inheritedNames()).toEqual([]);
  });

  const CONTROL = {
    type: 'string_control_characters',
    msg: 'String should have no control characters',
  };
  const UNSTORABLE = {
    type: 'string_control_characters',
    msg: 'String should have no NUL and be well-formed Unicode',
  };

  test.each([
    ['a NUL', 'a\\u0000b'],
    ['the first half of a surrogate pair', 'a\\ud800b'],
    ['the second half of a surrogate pair', 'a\\udc00b'],
    ['a surrogate pair the wrong way round', 'a\\udc00\\ud800b'],
  ])('R9 %s in a text is 422', async (_what, text) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const send = (path: string, body: string) => post(path, { as, body, headers: JSON_TYPE });
    const noBarcode = {
      type: 'ean13_digits',
      loc: ['body', 'barcode'],
      msg: 'A barcode must have 13 digits (EAN-13)',
    };
    const noPrice = {
      type: 'decimal_parsing',
      loc: ['body', 'price'],
      msg: 'A price is a number or decimal text',
    };
    const rejectedFor = (error: object) => rejected(422, { detail: [error] });
    expect(await send(CREATE, `{${GOOD},"name":"${text}"}`)).toEqual(
      rejectedFor({ ...CONTROL, loc: ['body', 'name'] }),
    );
    expect(await send(CREATE, `{${GOOD},"barcode":"${text}"}`)).toEqual(rejectedFor(noBarcode));
    expect(await send(CREATE, `{${GOOD},"price":"${text}"}`)).toEqual(rejectedFor(noPrice));
    expect(await send('/session/login', `{"username":"${text}","password":"x"}`)).toEqual(
      rejectedFor({ ...UNSTORABLE, loc: ['body', 'username'] }),
    );
    expect(await create(as)).toBe(201);
  });

  test.each([
    ['a name that is too long', { name: 'canary'.repeat(50) }],
    ['a name with a control character', { name: 'canary\u0007' }],
    ['a barcode with a wrong check digit', { barcode: '4006381333930' }],
    ['an invalid barcode', { barcode: 'canary' }],
    ['an invalid price', { price: 'canary' }],
    ['a price of too many digits', { price: '1.2345678' }],
  ])('Decisions, malformed body: 422 does not repeat what was sent: %s', async (_what, values) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const answer = await shop.rest('POST', CREATE, {
      as,
      json: { name: 'Pen', barcode: '4006381333931', price: 1, ...values },
    });
    expect(answer.status).toBe(422);
    expect(answer.text).not.toMatch(/canary|400638|2345678/);
  });
});

describe('a form', () => {
  test.each(FORM_ENDPOINTS)(
    'W6 a duplicate field is not a string, even with the same value: POST %s',
    async (path) => {
      const { username } = await shop.makeUser();
      const good = new URLSearchParams({ username, password: PASSWORD }).toString();
      const twice = (field: string) => ({
        detail: [
          { type: 'string_type', loc: ['body', field], msg: 'Input should be a valid string' },
        ],
      });
      expect(
        await post(path, { body: `${good}&username=${username}`, headers: FORM_TYPE }),
      ).toEqual(rejected(422, twice('username')));
      expect(await post(path, { body: `${good}&password=other`, headers: FORM_TYPE })).toEqual(
        rejected(422, twice('password')),
      );
      expect(await post(path, { body: `${good}&scope=a&scope=b`, headers: FORM_TYPE })).toEqual(
        rejected(422, twice('scope')),
      );
      expect((await shop.rest('POST', path, { body: good, headers: FORM_TYPE })).status).toBe(200);
    },
  );

  test.each([
    'username[$ne]',
    'username[]',
    'username[0]',
    'username.x',
    '__proto__[username]',
    'constructor[prototype][username]',
    '__proto__',
  ])('W6 %s is another field than username', async (name) => {
    for (const path of FORM_ENDPOINTS)
      expect(await post(path, { body: `${name}=x&password=x`, headers: FORM_TYPE })).toEqual(
        rejected(422, missing('username')),
      );
    expect(inheritedNames()).toEqual([]);
  });

  test.each(FORM_ENDPOINTS)('W7 unknown fields are ignored: POST %s', async (path) => {
    const { username } = await shop.makeUser();
    const form = {
      username,
      password: PASSWORD,
      grant_type: 'password',
      client_id: 'x',
      client_secret: 'x',
      disabled: 'true',
      __proto__x: 'x',
    };
    const answer = await shop.rest('POST', path, { form });
    expect([answer.status, answer.body]).toEqual([
      200,
      { access_token: expect.any(String), token_type: 'bearer' },
    ]);
  });

  test.each<[string, RequestOptions, string[]]>([
    ['no body', {}, ['username', 'password']],
    ['an empty body', { body: '', headers: FORM_TYPE }, ['username', 'password']],
    ['a body of &&==', { body: '&&==', headers: FORM_TYPE }, ['username', 'password']],
    ['a username alone', { form: { username: 'x' } }, ['password']],
    ['a password alone', { form: { password: 'x' } }, ['username']],
  ])('R2 %s lacks fields', async (_what, request, fields) => {
    for (const path of FORM_ENDPOINTS)
      expect(await post(path, request)).toEqual(rejected(422, missing(...fields)));
  });

  test('R9 a NUL in a username is 422', async () => {
    for (const path of FORM_ENDPOINTS)
      expect(await post(path, { form: { username: 'a\0b', password: 'x' } })).toEqual(
        rejected(422, {
          detail: [
            {
              type: 'string_control_characters',
              loc: ['body', 'username'],
              msg: 'String should have no NUL and be well-formed Unicode',
            },
          ],
        }),
      );
  });
});

describe('a query', () => {
  const LOGIN = '/api/v2/auth/login';

  test.each<[string, object]>([
    ['username=a&username=b&password=x', twice('username')],
    ['username=a&password=x&password=x', twice('password')],
    ['username[$ne]=x&password=x', missingInQuery('username')],
    ['__proto__[username]=a&__proto__=b&password=x', missingInQuery('username')],
  ])('W6 a login by ?%s is 422', async (query, body) => {
    const answer = await shop.rest('GET', `${LOGIN}?${query}`);
    expect([answer.status, answer.body]).toEqual([422, body]);
    expect(await shop.sql('select * from session')).toEqual([]);
    expect(inheritedNames()).toEqual([]);
  });

  test.each(['%zz', '%ff', '%', '%00%'])('R23 %s in a query is no server error', async (text) => {
    const answer = await shop.rest('GET', `/api/v2/shop/products?page=${text}`);
    expect([answer.status, answer.body]).toEqual([
      422,
      {
        detail: [
          { type: 'int_parsing', loc: ['query', 'page'], msg: 'Input should be a valid integer' },
        ],
      },
    ]);
    expect((await shop.rest('GET', `/api/v2/shop/products?${text}=${text}`)).status).toBe(200);
  });

  function twice(field: string) {
    return {
      detail: [
        { type: 'string_type', loc: ['query', field], msg: 'Input should be a valid string' },
      ],
    };
  }

  function missingInQuery(...fields: string[]) {
    return {
      detail: fields.map((field) => ({
        type: 'missing',
        loc: ['query', field],
        msg: 'Field required',
      })),
    };
  }
});

describe('a path', () => {
  test.each(['%zz', '%', '%ff', '%c3%28', '%ed%a0%80', '%e0%a4%a'])(
    'Decisions, unknown path: one that cannot be decoded is 404: %s',
    async (text) => {
      await shop.makeProduct();
      for (const path of [
        `/api/v1/shop/product/${text}`,
        `/${text}`,
        `/users/${text}`,
        `/token${text}`,
      ]) {
        const answer = await shop.rest('GET', path);
        expect([path, answer.status, answer.text]).toEqual([path, 404, '{"detail":"Not found"}']);
        expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
      }
      expect((await shop.rest('GET', '/api/v1/shop/product/1')).status).toBe(200);
    },
  );

  test.each([
    '%00',
    '1%00',
    '1%20',
    '%31%2e0',
    '1;2',
    '$',
    'constructor',
    '__proto__',
    '%F0%9F%96%8A',
  ])('R21 %s is not a pk', async (text) => {
    await shop.makeProduct();
    const answer = await shop.rest('GET', `/api/v1/shop/product/${text}`);
    expect([answer.status, answer.text]).toEqual([404, '{"detail":"No such product"}']);
  });

  test.each(['/TOKEN', '/users/../token/../x', '/constructor', '/__proto__'])(
    'R13 there is nothing at %s',
    async (path) => {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await shop.rest(method, path);
        expect([answer.status, answer.text]).toEqual([404, '{"detail":"Not found"}']);
      }
    },
  );
});

describe('the head of a request', () => {
  const sendHead = (head: string) => shop.raw(`${head}\r\nConnection: close\r\n\r\n`);

  test.each([
    ['GET /users/me/', 'detail'],
    ['GET /api/v1/shop/products', 'detail'],
    ['POST /api/v1/shop/product/', 'detail'],
    ['GET /graphql?query={me{username}}', 'errors'],
    ['POST /api/v2/auth/login', 'data'],
  ])('J33 two Authorization headers are 400: %s', async (line, key) => {
    const token = shop.tokenOf(await shop.makeUser({ scopes: ['products:write'] }));
    for (const [one, two] of [
      [token, 'x'],
      ['x', token],
      [token, token],
    ]) {
      const answer = await sendHead(
        `${line} HTTP/1.1\r\nHost: shop\r\napollo-require-preflight: 1\r\nAuthorization: Bearer ${one}\r\nAuthorization: Bearer ${two}`,
      );
      const message = 'Duplicate Authorization header';
      expect(readRaw(answer)).toEqual([
        400,
        { [key]: key === 'errors' ? [{ message, extensions: { code: 'BAD_REQUEST' } }] : message },
      ]);
    }
    expect(
      readRaw(
        await sendHead(`GET /users/me/ HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer ${token}`),
      ),
    ).toEqual([200, expect.any(Object)]);
  });

  test('J33 two Authorization headers are 400 at the login that reads one, too: the first never wins', async () => {
    const { username } = await shop.makeUser();
    const basic = (password: string) =>
      `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    for (const [one, two] of [
      [basic(PASSWORD), basic('wrong')],
      [basic('wrong'), basic(PASSWORD)],
    ]) {
      const answer = await sendHead(
        `GET /api/v2/auth/login HTTP/1.1\r\nHost: shop\r\nAuthorization: ${one}\r\nAuthorization: ${two}`,
      );
      expect(readRaw(answer)).toEqual([400, { data: 'Duplicate Authorization header' }]);
    }
    expect(await shop.sql('select * from session')).toEqual([]);
  });

  test.each([
    ['two lengths', 'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}'],
    ['a length and chunks', 'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['an invalid length', 'Content-Length: x\r\n\r\n{}'],
  ])('RFC 9112, 6.3: a body of ambiguous length is 400: %s', async (_what, rest) => {
    const answer = await shop.raw(
      `POST /session/login HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n${rest}`,
    );
    expect(answer).toBe(unreadable('400 Bad Request'));
    expect(await signIn(await shop.makeUser())).toBe(200);
  });
});

interface Outcome {
  status: number;
  body: unknown;
  type: string | null;
  /** Whether the row counts have changed. */
  stored: boolean;
}

async function post(path: string, request: RequestOptions): Promise<Outcome> {
  const before = await rowCounts();
  const { status, body, headers } = await shop.rest('POST', path, request);
  return {
    status,
    body,
    type: headers.get('Content-Type'),
    stored: (await rowCounts()) !== before,
  };
}

/** A rejection with this body, with nothing stored. */
function rejected(status: number, body: unknown): Outcome {
  return { status, body, type: 'application/json; charset=utf-8', stored: false };
}

/**
 * Sends the request to all endpoints that take JSON. Returns their responses, whether rows were
 * stored, and the statuses of valid requests after it.
 */
async function toAllJsonEndpoints(request: RequestOptions) {
  const user = await shop.makeUser({ scopes: ['products:write'] });
  const before = await rowCounts();
  const answers = await Promise.all(
    JSON_ENDPOINTS.map(([path]) => shop.rest('POST', path, { as: user, ...request })),
  );
  const stored = (await rowCounts()) !== before;
  return {
    answers: answers.map(({ status, body }) => [status, body]),
    stored,
    after: [await create(user), await logOut(user)],
  };
}

/** The same rejection by each, in its own error member; valid requests are served. */
function rejectedByAll(status: number, text: string) {
  return {
    answers: JSON_ENDPOINTS.map(([, key]) => [status, { [key]: text }]),
    stored: false,
    after: [201, 200],
  };
}

/** The status of a valid request to create a product. */
async function create(as: User): Promise<number> {
  return (
    await shop.rest('POST', CREATE, {
      as,
      json: { name: 'Pen', barcode: shop.newBarcode(), price: 12.5 },
    })
  ).status;
}

/** The status of a valid login. */
async function signIn({ username }: User): Promise<number> {
  return (await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } }))
    .status;
}

/** The status of a valid logout, which costs no hash. */
async function logOut(user: User): Promise<number> {
  const { key } = await sessions.open(shop.context(), user, null);
  return (await shop.rest('POST', '/session/logout', { json: { session_key: key } })).status;
}

function readRaw(answer: string): [number, unknown] {
  const [head = '', text = ''] = answer.split('\r\n\r\n');
  return [
    Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]),
    text.startsWith('{') ? JSON.parse(text) : text,
  ];
}

/** The enumerable names that every object inherits: none, unless a prototype was changed. */
function inheritedNames(): string[] {
  const found: string[] = [];
  for (const name in {}) found.push(name);
  return found;
}

async function rowCounts(): Promise<string> {
  const counts = await shop.sql(`
    select (select count(*) from product) as products, (select count(*) from "user") as users, (select count(*) from session) as sessions,
      (select count(*) from item) as items, (select count(*) from blog_entry) as entries, (select count(*) from idempotency_key) as keys`);
  return JSON.stringify(counts);
}

function missing(...fields: string[]) {
  return {
    detail: fields.map((field) => ({
      type: 'missing',
      loc: ['body', field],
      msg: 'Field required',
    })),
  };
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}
