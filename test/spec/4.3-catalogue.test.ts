import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };

// GET /api/v1/shop/products

// GET /api/v1/shop/product/{pk}

// POST /api/v1/shop/product/

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
