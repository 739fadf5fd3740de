import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };
const BOWL = { name: 'Oak bowl', barcode: '5901234123457', price: 7 };

describe('with a pool much smaller than the number of requests', () => {
  const [small, other] = [
    new Shop({ DATABASE_POOL_MAX: '2' }),
    new Shop({ DATABASE_POOL_MAX: '2' }),
  ];
  beforeAll(async () => void (await Promise.all([small.start(), other.start()])));
  afterAll(async () => void (await Promise.all([small.stop(), other.stop()])));

  test('Idempotency-Key: of 100 concurrent requests on two instances, one adds the product and all get the same 201; reads continue', async () => {
    const request = { as: await writer(), json: TRAY, headers: { 'Idempotency-Key': 'k' } };
    const responses = Array.from({ length: 100 }, (_, index) =>
      (index % 2 ? small : other).rest('POST', PRODUCT, request),
    );
    const reads = Array.from({ length: 20 }, () => small.rest('GET', '/api/v2/shop/products'));
    const answers = await Promise.all(responses);
    expect(answers.map(({ status }) => status)).toEqual(Array<number>(100).fill(201));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await Promise.all(reads)).map(({ status }) => status)).toEqual(
      Array<number>(20).fill(200),
    );
    expect(await names()).toEqual(['Walnut tray']);
  });
});

describe('with ANONYMOUS_SCOPES', () => {
  const open = useShop({ ANONYMOUS_SCOPES: 'products:write', TRUST_PROXY: '127.0.0.1' });

  test('Idempotency-Key: keys of callers with and without credentials are separate', async () => {
    const signedIn = await open.rest('POST', PRODUCT, {
      as: await writer(),
      json: TRAY,
      headers: { 'Idempotency-Key': 'k' },
    });
    const anonymous = await open.rest('POST', PRODUCT, {
      json: BOWL,
      headers: { 'Idempotency-Key': 'k' },
    });
    const again = await open.rest('POST', PRODUCT, {
      json: BOWL,
      headers: { 'Idempotency-Key': 'k' },
    });
    expect([signedIn.status, anonymous.status, again.status]).toEqual([201, 201, 201]);
    expect(again.text).toBe(anonymous.text);
  });
});

test.each([
  '!',
  'x'.repeat(255),
  '8e03978e-40d5-43dd-bc93-6894a57f9324',
  '"quoted"',
  `'; drop table idempotency_key; --`.replaceAll(' ', ''),
])('Idempotency-Key: %s is accepted', async (key) => {
  const as = await writer();
  const answers = [await create(TRAY, key, { as }), await create(TRAY, key, { as })];
  expect(answers.map(({ status }) => status)).toEqual([201, 201]);
});

test.each([
  ['is empty', ''],
  ['has 256 characters', 'x'.repeat(256)],
  ['has a space', 'a b'],
  ['is not ASCII', 'caf\u00e9'],
])(
  'Idempotency-Key: one that %s is rejected with 422, and nothing is added',
  async (_what, key) => {
    const answer = await create(TRAY, key, { as: await writer() });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        { type: expect.any(String), loc: ['header', 'idempotency-key'], msg: expect.any(String) },
      ],
    });
    expect(await names()).toEqual([]);
  },
);

function create(json: object, key: string | undefined, request: RequestOptions): Promise<Answer> {
  return shop.rest('POST', PRODUCT, {
    ...request,
    json,
    ...(key !== undefined && { headers: { 'Idempotency-Key': key } }),
  });
}

function writer(): Promise<User> {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

async function names(): Promise<unknown[]> {
  return (await shop.sql('select name from product order by pk')).map(({ name }) => name);
}
