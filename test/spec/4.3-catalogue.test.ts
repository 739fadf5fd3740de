import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/users/user.entity.ts';
import { PASSWORD, PUBLIC_URL, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const LIST = '/api/v1/shop/products';
const PRODUCT = '/api/v1/shop/product/';
const PAGES = '/api/v2/shop/products';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };

// GET /api/v1/shop/products

test('4.3 GET /api/v1/shop/products answers all products in the database, by pk', async () => {
  const made = await shop.makeProducts(3);
  const answer = await shop.rest('GET', LIST);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual(made.map(({ pk, name, barcode }) => ({ pk, name, barcode, price: 9.99 })));
});

test('4.3 GET /api/v1/shop/products answers an empty array where there is no product', async () => {
  const answer = await shop.rest('GET', LIST);
  expect(answer.status).toBe(200);
  expect(answer.text).toBe('[]');
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('4.3 /api/v1/shop/products handles only GET, not %s', async (method) => {
  const answer = await shop.rest(method, LIST);
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('GET, OPTIONS');
  expect(answer.body).toEqual({ detail: `Method "${method}" not allowed.` });
});

// GET /api/v1/shop/product/{pk}

test('4.3 GET /api/v1/shop/product/{pk} answers the product with that pk', async () => {
  await shop.makeProduct();
  const { pk } = await shop.makeProduct({ name: 'Walnut tray', barcode: '4006381333931', price: '12.50' });
  const answer = await shop.rest('GET', PRODUCT + pk);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual({ pk, ...TRAY });
});

test('4.3 GET /api/v1/shop/product/{pk} answers 404 for a pk that no product has', async () => {
  const { pk } = await shop.makeProduct();
  const answer = await shop.rest('GET', PRODUCT + (pk + 1));
  expect(answer.status).toBe(404);
  expect(answer.body).toEqual({ detail: expect.any(String) });
});

test.each([
  'abc',
  '1.5',
  '1e0',
  '0x1',
  '-1',
  '0',
  '%D9%A1',
  '1%00',
  '1%2F1',
  '%zz',
  "1'--",
  '2147483648',
  '9223372036854775808',
  '100000000000000000000000000001',
  '1'.repeat(2_000),
])('4.3 GET /api/v1/shop/product/{pk} answers 404 for %s', async (pk) => {
  await shop.makeProduct();
  const answer = await shop.rest('GET', PRODUCT + pk);
  expect(answer.status).toBe(404);
  expect(answer.body).toEqual({ detail: expect.any(String) });
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('4.3 /api/v1/shop/product/{pk} handles only GET, not %s', async (method) => {
  const { pk } = await shop.makeProduct();
  const answer = await shop.rest(method, PRODUCT + pk);
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('GET, OPTIONS');
  expect(answer.body).toEqual({ detail: `Method "${method}" not allowed.` });
});

test.each([LIST, `${PRODUCT}1`, PAGES])('4.3 GET %s is public; credentials that are wrong fail it all the same', async (path) => {
  await shop.makeProduct();
  const inactive = await shop.makeUser({ password: null, disabled: true });
  const answers = [
    await shop.rest('GET', path),
    await shop.rest('GET', path, { token: 'expired' }),
    await shop.rest('GET', path, { sessionKey: 'ended' }),
    await shop.rest('GET', path, { as: inactive }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 400]);
});

// POST /api/v1/shop/product/

test('4.3 POST /api/v1/shop/product/ adds a record and answers 201, the product and where it is', async () => {
  const answer = await create(TRAY);
  expect(answer.status).toBe(201);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual({ pk: 1, ...TRAY });
  expect(new URL(answer.headers.get('location') ?? '', shop.url).pathname).toBe('/api/v1/shop/product/1');
  expect(await shop.sql('select pk, name, barcode, price::text from product')).toEqual([{ pk: 1, ...TRAY, price: '12.50' }]);
});

test.each(['/api/v1/shop/product/1', LIST, PAGES])('4.3 a product that was created is read at %s', async (path) => {
  await create(TRAY);
  const { body } = await shop.rest('GET', path);
  expect([body.items ?? body].flat()).toEqual([{ pk: 1, ...TRAY }]);
});

test('4.3 POST /api/v1/shop/product/ handles POST and no GET', async () => {
  const answer = await shop.rest('GET', PRODUCT);
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('POST, OPTIONS');
  expect(answer.body).toEqual({ detail: 'Method "GET" not allowed.' });
});

test('4.3 POST /api/v1/shop/product/ is refused with 401 without credentials', async () => {
  const answer = await shop.rest('POST', PRODUCT, { json: TRAY });
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  expect(answer.body).toEqual({ detail: 'Not authenticated' });
  expect(await stored()).toBe(0);
});

test('4.3 POST /api/v1/shop/product/ is refused with 403, which names the scope, without products:write', async () => {
  const answer = await create(TRAY, { as: await shop.makeUser({ password: null, scopes: ['users:read', 'blog:write'] }) });
  expect(answer.status).toBe(403);
  expect(answer.body).toEqual({ detail: expect.stringContaining('products:write') });
  expect(await stored()).toBe(0);
});

test.each(['X-SESSION-ID', 'X-SESSIONID'])('4.3 POST /api/v1/shop/product/ takes a session key in %s, too', async (header) => {
  const { username } = await shop.makeUser({ scopes: ['products:write'] });
  const { body } = await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } });
  const answer = await shop.rest('POST', PRODUCT, { json: TRAY, headers: { [header]: body.session_key } });
  expect(answer.status).toBe(201);
});

describe('with ANONYMOUS_SCOPES', () => {
  const open = new Shop({ ANONYMOUS_SCOPES: 'products:write' });
  beforeAll(() => open.start());
  afterAll(() => open.stop());

  test('4.3 POST /api/v1/shop/product/ needs no credentials where ANONYMOUS_SCOPES names products:write', async () => {
    const answer = await open.rest('POST', PRODUCT, { json: TRAY });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({ pk: 1, ...TRAY });
  });

  test('4.3 ANONYMOUS_SCOPES gives nothing to a caller whose credentials lack the scope', async () => {
    const answer = await open.rest('POST', PRODUCT, { json: TRAY, as: await shop.makeUser({ password: null }) });
    expect(answer.status).toBe(403);
  });
});

test('4.3 POST needs no CSRF token, for credentials are never ambient: a cookie is none, and none is set', async () => {
  const { username } = await shop.makeUser({ scopes: ['products:write'] });
  const login = await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } });
  const key = login.body.session_key as string;
  const answer = await shop.rest('POST', PRODUCT, {
    json: TRAY,
    headers: { Cookie: `session_key=${key}; sessionid=${key}; X-SESSION-ID=${key}` },
  });
  expect(answer.status).toBe(401);
  expect([login.headers.get('set-cookie'), answer.headers.get('set-cookie')]).toEqual([null, null]);
});

test('4.3 POST /api/v1/shop/product/ ignores unknown fields', async () => {
  const json = { ...TRAY, pk: 9, colour: 'red', hashed_password: 'x', createdAt: '1999-01-01', nameKey: 'x' };
  const answer = await create(json);
  expect(answer.status).toBe(201);
  expect(answer.body).toEqual({ pk: 1, ...TRAY });
  expect(await shop.sql('select name_key, created_at > $$2000-01-01$$ as now from product')).toEqual([
    { name_key: 'walnut tray', now: true },
  ]);
});

test('4.3 POST /api/v1/shop/product/ refuses the barcode of another product with 409', async () => {
  const { pk } = await shop.makeProduct({ name: 'Oak tray', barcode: TRAY.barcode });
  const answer = await create(TRAY);
  expect(answer.status).toBe(409);
  expect(answer.body).toEqual({ detail: expect.any(String) });
  expect(await shop.sql('select pk, name from product')).toEqual([{ pk, name: 'Oak tray' }]);
});

test('4.3 POST /api/v1/shop/product/ adds exactly one of 100 products with one barcode that come at once', async () => {
  const as = await writer();
  const answers = await Promise.all(Array.from({ length: 100 }, () => create(TRAY, { as })));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(99).fill(409)]);
  expect(await stored()).toBe(1);
});

test('4.3 POST /api/v1/shop/product/ adds all of 100 products with different barcodes that come at once', async () => {
  const as = await writer();
  const answers = await Promise.all(Array.from({ length: 100 }, () => create({ ...TRAY, barcode: shop.newBarcode() }, { as })));
  expect(answers.map(({ status }) => status)).toEqual(Array<number>(100).fill(201));
  expect(new Set(answers.map(({ body }) => body.pk as number)).size).toBe(100);
  expect(await stored()).toBe(100);
});

test.each([
  ['{"name":', 400],
  ['{"name":"Walnut tray","barcode":"4006381333931","price":12.5,}', 400],
  ['{"name":"Walnut tray","barcode":"4006381333931","price":NaN}', 400],
  ['{"name":"Walnut tray","barcode":"4006381333931","price":12.5} x', 400],
  ['{"name":"Walnut\0tray","barcode":"4006381333931","price":12.5}', 400],
])('4.3 POST /api/v1/shop/product/ refuses %j, which does not parse, with %i', async (body, status) => {
  const answer = await create(undefined, { body, headers: { 'Content-Type': 'application/json' } });
  expect(answer.status).toBe(status);
  expect(answer.body).toEqual({ detail: expect.any(String) });
  expect(await stored()).toBe(0);
});

test('4.3 POST /api/v1/shop/product/ refuses bytes that are no UTF-8, and so no JSON, with 400', async () => {
  const body = new Uint8Array(Buffer.from(JSON.stringify({ ...TRAY, name: 'Käse' }), 'latin1'));
  const answer = await create(undefined, { body, headers: { 'Content-Type': 'application/json' } });
  expect(answer.status).toBe(400);
  expect(await stored()).toBe(0);
});

test.each([
  'text/plain',
  'application/xml',
  'application/x-www-form-urlencoded',
  'application/vnd.api+json',
  'application/json; charset=utf-16',
  'application/json; charset=latin1',
])('4.3 POST /api/v1/shop/product/ refuses the content type %s with 415', async (type) => {
  const answer = await create(undefined, { body: JSON.stringify(TRAY), headers: { 'Content-Type': type } });
  expect(answer.status).toBe(415);
  expect(answer.body).toEqual({ detail: expect.any(String) });
  expect(await stored()).toBe(0);
});

test('4.3 POST /api/v1/shop/product/ refuses a body without a content type with 415', async () => {
  const answer = await create(undefined, { body: new TextEncoder().encode(JSON.stringify(TRAY)) });
  expect(answer.status).toBe(415);
  expect(await stored()).toBe(0);
});

test.each(['application/json', 'application/json; charset=UTF-8', 'Application/JSON;charset="utf-8"'])(
  '4.3 POST /api/v1/shop/product/ takes the content type %s',
  async (type) => {
    const answer = await create(undefined, { body: JSON.stringify(TRAY), headers: { 'Content-Type': type } });
    expect(answer.status).toBe(201);
  },
);

test('4.3 POST /api/v1/shop/product/ refuses a body that is too large with 413', async () => {
  const answer = await create({ ...TRAY, colour: 'x'.repeat(16_384) });
  expect(answer.status).toBe(413);
  expect(answer.body).toEqual({ detail: expect.any(String) });
  expect(await stored()).toBe(0);
});

// GET /api/v2/shop/products

test('4.3 GET /api/v2/shop/products?page= answers 10, 10 and 5 of 25 products, with links to the neighbours', async () => {
  const made = (await shop.makeProducts(25)).map(({ pk, name, barcode }) => ({ pk, name, barcode, price: 9.99 }));
  const pages = [
    await shop.rest('GET', `${PAGES}?page=1`),
    await shop.rest('GET', `${PAGES}?page=2`),
    await shop.rest('GET', `${PAGES}?page=3`),
  ];
  expect(pages.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(pages.map(({ body }) => body as unknown)).toEqual([
    { items: made.slice(0, 10), count: 25, next: `${PUBLIC_URL}${PAGES}?page=2`, previous: null },
    { items: made.slice(10, 20), count: 25, next: `${PUBLIC_URL}${PAGES}?page=3`, previous: `${PUBLIC_URL}${PAGES}?page=1` },
    { items: made.slice(20), count: 25, next: null, previous: `${PUBLIC_URL}${PAGES}?page=2` },
  ]);
});

test.each(['page=2', 'limit=10&offset=10'])(
  '4.3 GET /api/v2/shop/products?%s that ends with the last product has no next',
  async (query) => {
    await shop.makeProducts(20);
    const { body } = await shop.rest('GET', `${PAGES}?${query}`);
    expect(body.items).toHaveLength(10);
    expect(body.next).toBeNull();
  },
);

test('4.3 GET /api/v2/shop/products is ordered by pk, not by when a product was changed', async () => {
  await shop.makeProducts(12);
  await shop.sql(`update product set name = 'Changed' where pk % 2 = 0`);
  const { body } = await shop.rest('GET', `${PAGES}?page=1`);
  expect(pks(body)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
});

test('4.3 GET /api/v2/shop/products without parameters answers page 1', async () => {
  await shop.makeProducts(11);
  const first = await shop.rest('GET', `${PAGES}?page=1`);
  const answer = await shop.rest('GET', PAGES);
  expect(answer.body.items).toHaveLength(10);
  expect(answer.body).toEqual(first.body);
});

test('4.3 GET /api/v2/shop/products answers an empty page where there is no product', async () => {
  const answer = await shop.rest('GET', PAGES);
  expect(answer.status).toBe(200);
  expect(answer.headers.get('link')).toBeNull();
  expect(answer.body).toEqual({ items: [], count: 0, next: null, previous: null });
});

test('4.3 GET /api/v2/shop/products?limit=&offset= answers that part of the list', async () => {
  const made = await shop.makeProducts(5);
  const answer = await shop.rest('GET', `${PAGES}?limit=2&offset=2`);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({
    items: made.slice(2, 4).map(({ pk, name, barcode }) => ({ pk, name, barcode, price: 9.99 })),
    count: 5,
    next: `${PUBLIC_URL}${PAGES}?limit=2&offset=4`,
    previous: `${PUBLIC_URL}${PAGES}?limit=2&offset=0`,
  });
});

test('4.3 GET /api/v2/shop/products takes limit without offset, from the first on', async () => {
  await shop.makeProducts(3);
  const { body } = await shop.rest('GET', `${PAGES}?limit=2`);
  expect(pks(body)).toEqual([1, 2]);
});

test('4.3 the links of GET /api/v2/shop/products stand in the Link header, too', async () => {
  await shop.makeProducts(21);
  const { headers } = await shop.rest('GET', `${PAGES}?page=2`);
  expect(headers.get('link')).toBe(`<${PUBLIC_URL}${PAGES}?page=3>; rel="next", <${PUBLIC_URL}${PAGES}?page=1>; rel="prev"`);
});

test.each(['page=1', 'limit=4', 'limit=4&offset=0'])('4.3 following next from ?%s leads through every product once', async (query) => {
  const made = await shop.makeProducts(23);
  const walked: number[] = [];
  for (let url: string | null = `${PUBLIC_URL}${PAGES}?${query}`; url !== null && walked.length < 100;) {
    const { body } = await shop.rest('GET', url.slice(PUBLIC_URL.length));
    walked.push(...pks(body));
    url = body.next as string | null;
  }
  expect(walked).toEqual(made.map(({ pk }) => pk));
});

test.each(['page=3', 'limit=4&offset=20'])('4.3 following previous from ?%s leads back to the first product', async (query) => {
  await shop.makeProducts(23);
  let first: number | undefined;
  for (let url: string | null = `${PUBLIC_URL}${PAGES}?${query}`, hops = 0; url !== null && hops < 10; hops++) {
    const { body } = await shop.rest('GET', url.slice(PUBLIC_URL.length));
    [first] = pks(body);
    url = body.previous as string | null;
  }
  expect(first).toBe(1);
});

test('4.3 a page keeps its place while products are added', async () => {
  await shop.makeProducts(15);
  const before = await shop.rest('GET', `${PAGES}?page=1`);
  await shop.makeProducts(3);
  const after = await shop.rest('GET', `${PAGES}?page=2`);
  expect([...pks(before.body), ...pks(after.body)]).toEqual(Array.from({ length: 18 }, (_, index) => index + 1));
});

test.each([
  'Host: evil.example',
  'Host: shop.example\r\nX-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: gopher',
  'Host: shop.example\r\nForwarded: host=evil.example;proto=gopher',
])('4.3 the links of GET /api/v2/shop/products start with PUBLIC_URL, whatever the request says: %j', async (headers) => {
  await shop.makeProducts(21);
  const [head = '', body = ''] = (await shop.raw(`GET ${PAGES}?page=2 HTTP/1.1\r\n${headers}\r\nConnection: close\r\n\r\n`)).split(
    '\r\n\r\n',
  );
  expect(JSON.parse(body)).toMatchObject({ next: `${PUBLIC_URL}${PAGES}?page=3`, previous: `${PUBLIC_URL}${PAGES}?page=1` });
  expect(head).toContain(`\r\nLink: <${PUBLIC_URL}${PAGES}?page=3>; rel="next", <${PUBLIC_URL}${PAGES}?page=1>; rel="prev"\r\n`);
  expect(head + body).not.toMatch(/evil|gopher/);
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('4.3 /api/v2/shop/products handles only GET, not %s', async (method) => {
  const answer = await shop.rest(method, PAGES);
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('GET, OPTIONS');
  expect(answer.body).toEqual({ detail: `Method "${method}" not allowed.` });
});

async function create(json: object | undefined, request: RequestOptions = {}): Promise<Answer> {
  return shop.rest('POST', PRODUCT, { as: request.as ?? (await writer()), json, ...request });
}

function writer(): Promise<User> {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

async function stored(): Promise<number> {
  return (await shop.sql('select pk from product')).length;
}

function pks({ items }: { items: { pk: number }[] }): number[] {
  return items.map(({ pk }) => pk);
}
