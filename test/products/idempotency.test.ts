import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };
const BOWL = { name: 'Oak bowl', barcode: '5901234123457', price: 7 };
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

test('Idempotency-Key: the same key and body gets the first response, and adds nothing', async () => {
  const as = await writer();
  const first = await create(TRAY, 'k', { as });
  const again = await create(TRAY, 'k', { as });
  expect(first.status).toBe(201);
  expect(again.status).toBe(201);
  expect(again.text).toBe(first.text);
  expect(again.headers.get('location')).toBe(first.headers.get('location'));
  expect(await names()).toEqual(['Walnut tray']);
});

test.each([
  ['changed', `update product set name = 'Renamed', price = 1`, ['Renamed']],
  ['deleted', 'delete from product', []],
])(
  'Idempotency-Key: the response is the first one, even if the product has been %s since, and it stays so',
  async (_what, statement, left) => {
    const as = await writer();
    const first = await create(TRAY, 'k', { as });
    await shop.sql(statement);
    const again = await create(TRAY, 'k', { as });
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(await names()).toEqual(left);
  },
);

test('Idempotency-Key: it is claimed by one statement, and stored by another', async () => {
  const as = await writer();
  const { statements } = await recordStatements(() => create(TRAY, 'k', { as }));
  expect(
    statements
      .filter((text) => text.includes('idempotency_key'))
      .map((text) => text.trim().split(' ')[0]),
  ).toEqual(['insert', 'update']);
});

test.each([
  ['name', { ...TRAY, name: 'Oak tray' }],
  ['barcode', { ...TRAY, barcode: BOWL.barcode }],
  ['price', { ...TRAY, price: 12.51 }],
])(
  'Idempotency-Key: the same key with another %s gets 422, and adds nothing; the first body still gets the first response',
  async (_field, json) => {
    const as = await writer();
    const first = await create(TRAY, 'k', { as });
    const answer = await create(json, 'k', { as });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        {
          type: 'idempotency_key_reused',
          loc: ['header', 'idempotency-key'],
          msg: 'The key was used for another request',
        },
      ],
    });
    expect((await create(TRAY, 'k', { as })).text).toBe(first.text);
    expect(await names()).toEqual(['Walnut tray']);
  },
);

test('Idempotency-Key: of 20 concurrent requests with one key and different bodies, one adds its product and 19 get 422', async () => {
  const as = await writer();
  const bodies = Array.from({ length: 20 }, () => ({ ...TRAY, barcode: shop.newBarcode() }));
  const answers = await Promise.all(bodies.map((json) => create(json, 'k', { as })));
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    201,
    ...Array<number>(19).fill(422),
  ]);
  expect(await names()).toHaveLength(1);
});

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

  test('Idempotency-Key: 100 concurrent invalid requests are all rejected, and the key stays free', async () => {
    const as = await writer();
    await create(TRAY, undefined, { as });
    const request = { as, json: TRAY, headers: { 'Idempotency-Key': 'k' } };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => small.rest('POST', PRODUCT, request)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array<number>(100).fill(409));
    expect((await create(BOWL, 'k', { as })).status).toBe(201);
  });
});

test('Idempotency-Key: different keys are different requests', async () => {
  const as = await writer();
  await create(TRAY, 'k', { as });
  const same = await create(TRAY, 'K', { as });
  const other = await create(BOWL, 'k2', { as });
  expect([same.status, other.status]).toEqual([409, 201]);
});

test('Idempotency-Key: without one, the same body twice is two requests', async () => {
  const as = await writer();
  const statuses = [
    (await create(TRAY, undefined, { as })).status,
    (await create(TRAY, undefined, { as })).status,
  ];
  expect(statuses).toEqual([201, 409]);
});

test('Idempotency-Key: keys of different callers are separate', async () => {
  const [ann, bob] = [await writer(), await writer()];
  const first = await create(TRAY, 'k', { as: ann });
  const other = await create(BOWL, 'k', { as: bob });
  const same = await create(TRAY, 'k', { as: bob });
  const again = await create(TRAY, 'k', { as: ann });
  expect([first.status, other.status, same.status, again.status]).toEqual([201, 201, 422, 201]);
  expect(other.body).toEqual({ pk: 2, ...BOWL });
  expect(again.text).toBe(first.text);
});

describe('with ANONYMOUS_SCOPES', () => {
  const open = new Shop({ ANONYMOUS_SCOPES: 'products:write', TRUST_PROXY: '127.0.0.1' });
  beforeAll(() => open.start());
  afterAll(() => open.stop());

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

  test('Idempotency-Key: keys of callers without credentials from different networks are separate', async () => {
    const from = (network: string) =>
      open.rest('POST', PRODUCT, {
        json: TRAY,
        headers: { 'Idempotency-Key': 'k', 'X-Forwarded-For': network },
      });
    expect([
      (await from('192.0.2.1')).status,
      (await from('192.0.2.1')).status,
      (await from('192.0.2.2')).status,
    ]).toEqual([201, 201, 409]);
  });
});

test('Idempotency-Key: a caller who has lost the scope gets no stored response', async () => {
  const as = await writer();
  await create(TRAY, 'k', { as });
  await shop.sql(`update "user" set scopes = '{}'`);
  const answer = await create(TRAY, 'k', { as });
  expect(answer.status).toBe(403);
});

test('Idempotency-Key: it is stored for a day, and expires then', async () => {
  const as = await writer();
  const first = await create(TRAY, 'k', { as });
  shop.advanceClock(DAY - MINUTE);
  const again = await create(TRAY, 'k', { as });
  expect([again.status, again.text]).toEqual([201, first.text]);
  shop.advanceClock(MINUTE);
  const same = await create(TRAY, 'k', { as });
  const other = await create(BOWL, 'k', { as });
  expect([same.status, other.status]).toEqual([409, 201]);
  expect(await names()).toEqual(['Walnut tray', 'Oak bowl']);
});

test.each([
  ['fields are missing', {}, 422],
  ['the barcode is taken', TRAY, 409],
])(
  'Idempotency-Key: a request rejected because %s leaves its key free',
  async (_why, json, status) => {
    const as = await writer();
    await create(TRAY, undefined, { as });
    const rejected = await create(json, 'k', { as });
    const answer = await create(BOWL, 'k', { as });
    expect([rejected.status, answer.status]).toEqual([status, 201]);
  },
);

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
