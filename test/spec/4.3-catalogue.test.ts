import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { PASSWORD, Shop, useShop } from '../support/shop.ts';

const shop = useShop();

const LIST = '/api/v1/shop/products';
const PRODUCT = '/api/v1/shop/product/';
const PAGES = '/api/v2/shop/products';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };

// GET /api/v1/shop/products

test('4.3 GET /api/v1/shop/products returns all products in the database, by pk', async () => {
  const made = await shop.makeProducts(3);
  const answer = await shop.rest('GET', LIST);
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual(
    made.map(({ pk, name, barcode }) => ({ pk, name, barcode, price: 9.99 })),
  );
});

// GET /api/v1/shop/product/{pk}

test.each([
  '1e0',
  '0x1',
  '0',
  '%D9%A1',
  '1%2F1',
  "1'--",
  '2147483648',
  '9007199254740992',
  '9223372036854775808',
  '100000000000000000000000000001',
  '1'.repeat(2_000),
  '%00',
  '1%00',
  '1%20',
  '%31%2e0',
  '1;2',
  '$',
  'constructor',
  '__proto__',
  '%F0%9F%96%8A',
])('4.3 GET /api/v1/shop/product/{pk} returns 404 for %s', async (pk) => {
  await shop.makeProduct();
  const answer = await shop.rest('GET', PRODUCT + pk);
  expect([answer.status, answer.text]).toEqual([404, '{"detail":"No such product"}']);
});

test.each([LIST, `${PRODUCT}1`, PAGES])(
  '4.3 GET %s is public, but fails with invalid credentials',
  async (path) => {
    await shop.makeProduct();
    const inactive = await shop.makeUser({ password: null, disabled: true });
    const answers = [
      await shop.rest('GET', path),
      await shop.rest('GET', path, { token: 'expired' }),
      await shop.rest('GET', path, { sessionKey: 'ended' }),
      await shop.rest('GET', path, { as: inactive }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([200, 401, 401, 400]);
  },
);

// POST /api/v1/shop/product/

test.each(['/api/v1/shop/product/1', LIST, PAGES])(
  '4.3 a created product is read at %s',
  async (path) => {
    const as = await shop.makeUser({ password: null, scopes: ['products:write'] });
    await shop.rest('POST', PRODUCT, { as, json: TRAY });
    const { status, headers, body } = await shop.rest('GET', path);
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect([body.items ?? body].flat()).toEqual([{ pk: 1, ...TRAY }]);
  },
);

test.each(['X-SESSION-ID', 'X-SESSIONID'])(
  '4.3 POST /api/v1/shop/product/ takes a session key in %s, too',
  async (header) => {
    const { username } = await shop.makeUser({ scopes: ['products:write'] });
    const { body } = await shop.rest('POST', '/session/login', {
      json: { username, password: PASSWORD },
    });
    const answer = await shop.rest('POST', PRODUCT, {
      json: TRAY,
      headers: { [header]: body.session_key },
    });
    expect(answer.status).toBe(201);
  },
);

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
    const answer = await open.rest('POST', PRODUCT, {
      json: TRAY,
      as: await shop.makeUser({ password: null }),
    });
    expect(answer.status).toBe(403);
  });
});

// GET /api/v2/shop/products

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

function pks({ items }: { items: { pk: number }[] }): number[] {
  return items.map(({ pk }) => pk);
}
