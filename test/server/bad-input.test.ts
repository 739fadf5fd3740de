import { expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, useShop, type RequestOptions } from '../support/shop.ts';

const CREATE = '/api/v1/shop/product/';
const JSON_TYPE = { 'Content-Type': 'application/json' };

const shop = useShop();

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

test.each([
  [CREATE, 'detail'],
  ['/session/login', 'data'],
  ['/session/logout', 'data'],
  ['/api/v2/auth/login', 'data'],
])('R4 the size is counted in bytes: POST %s', async (path, key) => {
  const as = await shop.makeUser({ scopes: ['products:write'] });
  const body = `{"pad":"${'é'.repeat(8 * 1024)}"}`;
  expect(await post(path, { as, body, headers: JSON_TYPE })).toEqual(
    rejected(413, { [key]: 'The request is too large' }),
  );
  expect(await create(as)).toBe(201);
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
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test.each([
  ['a name that is too long', { name: 'canary'.repeat(50) }],
  ['a name with a control character', { name: 'canary\u0007' }],
  ['a barcode with a wrong check digit', { barcode: '4006381333930' }],
  ['an invalid barcode', { barcode: 'canary' }],
  ['an invalid price', { price: 'canary' }],
  ['a price of too many digits', { price: '1.2345678' }],
])(
  'Decisions, malformed body: a 422 response does not contain the input: %s',
  async (_what, values) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const answer = await shop.rest('POST', CREATE, {
      as,
      json: { name: 'Pen', barcode: '4006381333931', price: 1, ...values },
    });
    expect(answer.status).toBe(422);
    expect(answer.text).not.toMatch(/canary|400638|2345678/);
  },
);

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

test('J33 two Authorization headers are 400 at the login that reads one, too: the first never wins', async () => {
  const { username } = await shop.makeUser();
  const basic = (password: string) =>
    `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  for (const [one, two] of [
    [basic(PASSWORD), basic('wrong')],
    [basic('wrong'), basic(PASSWORD)],
  ]) {
    const answer = await shop.raw(
      `GET /api/v2/auth/login HTTP/1.1\r\nHost: shop\r\nAuthorization: ${one}\r\nAuthorization: ${two}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(
      /^HTTP\/1\.1 400 .*\r\n\r\n\{"data":"Duplicate Authorization header"\}$/s,
    );
  }
  expect(await shop.sql('select * from session')).toEqual([]);
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

/** The status of a valid request to create a product. */
async function create(as: User): Promise<number> {
  return (
    await shop.rest('POST', CREATE, {
      as,
      json: { name: 'Pen', barcode: shop.newBarcode(), price: 12.5 },
    })
  ).status;
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
