import { beforeEach, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { sized } from '../support/sized.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const LIST = '/api/v1/shop/products';
const PAGES = '/api/v2/shop/products';
const PRICE = 'query ($pk: ID!) { product(pk: $pk) { price } }';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk price } }';

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ password: null, scopes: ['products:write'] });
});

describe('valid prices', () => {
  test.each([
    ['R17', '0', '0.00', '0'],
    ['R17', '-0', '0.00', '0'],
    ['R17', '-0.0', '0.00', '0'],
    ['R17', '-0e5', '0.00', '0'],
    ['R17', '0e400', '0.00', '0'],
    ['R17', '1e2', '100.00', '100'],
    ['R17', '1E+2', '100.00', '100'],
    ['R17', '1250e-2', '12.50', '12.5'],
    ['R17', '0.1e1', '1.00', '1'],
    ['R17', '0.01', '0.01', '0.01'],
    ['R17', '1e-2', '0.01', '0.01'],
    ['R17', '0.07', '0.07', '0.07'],
    ['R17', '1.15', '1.15', '1.15'],
    ['R17', '4.35', '4.35', '4.35'],
    ['R17', '999999.99', '999999.99', '999999.99'],
    ['R17', '9999999999', '9999999999.00', '9999999999'],
    ['R17', '9999999999.99', '9999999999.99', '9999999999.99'],
    ['R17', '9999999999.98', '9999999999.98', '9999999999.98'],
    ['R19', '"12.50"', '12.50', '12.5'],
    ['R19', '"0.00"', '0.00', '0'],
    ['R19', '"-0.00"', '0.00', '0'],
    ['R19', '"0012.5"', '12.50', '12.5'],
    ['R19', '"9999999999.99"', '9999999999.99', '9999999999.99'],
    ['R19', '"12.500"', '12.50', '12.5'],
    ['R19', '"0.000"', '0.00', '0'],
    ['R19', `"9999999999.99${'0'.repeat(400)}"`, '9999999999.99', '9999999999.99'],
    ['R19', `"${'0'.repeat(400)}1"`, '1.00', '1'],
    ['R20', '12.500', '12.50', '12.5'],
    ['R20', `12.5${'0'.repeat(400)}`, '12.50', '12.5'],
    ['R20', '12.10', '12.10', '12.1'],
    ['R20', '12.1', '12.10', '12.1'],
    ['R20', '"12.1"', '12.10', '12.1'],
  ])(
    '%s %s is 201, stored as %s, and read at every endpoint as the number %s',
    async (_id, source, stored, number) => {
      const made = await createWith(source);
      expect(made.status).toBe(201);
      const pk = String(made.body.pk);
      const answers = [
        made,
        await shop.rest('GET', PRODUCT + pk),
        await shop.rest('GET', LIST),
        await shop.rest('GET', PAGES),
        await shop.graphql(PRICE, { pk }),
      ];
      // Compared as text, because a parsed -0 equals 0.
      expect(answers.map(({ text }) => /"price":([^,}\]]*)/.exec(text)?.[1])).toEqual(
        answers.map(() => number),
      );
      expect(Object.is(made.body.price, -0)).toBe(false);
      expect(
        await shop.sql('select price::text as price, scale(price) as scale from product'),
      ).toEqual([{ price: stored, scale: 2 }]);
    },
  );
});

describe('invalid prices', () => {
  const NOT_EXACT = [
    '0.30000000000000004',
    '9007199254740993.01',
    '12.100000000000000000001',
    '0.1000000000000000055511151231257827',
  ];
  const TOO_MANY_DIGITS = [
    '0.005',
    '0.001',
    '19.999',
    '1e-3',
    '1e-7',
    '1.005',
    '12.345e0',
    '1e-400',
    '9999999999.985',
    ...NOT_EXACT,
  ];
  const TOO_LARGE = [
    '1e400',
    '1e308',
    '1e10',
    '1e11',
    '10000000000',
    '9999999999.991',
    '9999999999.9999999999',
    '1'.repeat(400),
  ];
  const BELOW_ZERO = ['-0.01', '-1', '-1e2', '-1e400', '-9999999999.99', '-0.001'];

  const NUMERALS = [
    'NaN',
    'nan',
    'Infinity',
    '-Infinity',
    'infinity',
    '0x10',
    '0b1',
    '0o7',
    '1e2',
    '1E2',
    '12e-1',
    '٥',
    '５',
    '𝟓',
    '½',
    '²',
  ];
  const GROUPED = [
    '1_000',
    '1,5',
    '1,000.00',
    '1.000,00',
    "1'000",
    '1 000',
    '1.2.3',
    '.5',
    '5.',
    '.',
    '-',
    '+',
    '+5',
    '--5',
    '5-',
  ];
  const SPACED = [' 5 ', '5 ', ' 5', '5\\n', '\\t5', '5\\u0000', '\\u00a05', '\\ufeff5', '', ' '];
  const WORDS = [
    '5€',
    '$5',
    '5 EUR',
    '5%',
    '(5)',
    'null',
    'true',
    'five',
    '1/2',
    '1+1',
    "1'--",
    '-1',
    '-0.01',
    '5\\ud800',
  ];
  const OTHERS = [
    'null',
    'true',
    'false',
    '[]',
    '{}',
    '[5]',
    '["5"]',
    '[[5]]',
    '{"$gt":0}',
    '{"__raw":"1"}',
    '{"source":"5"}',
    '{"valueOf":5}',
  ];
  /** Both APIs name the field and store nothing; a valid price is accepted afterwards. */
  const REJECTED = {
    rest: [422, [{ type: expect.any(String), loc: ['body', 'price'], msg: expect.any(String) }]],
    graphql: 'BAD_USER_INPUT',
    stored: [],
    after: 201,
  };

  test.each([...TOO_MANY_DIGITS, ...TOO_LARGE, ...BELOW_ZERO])(
    'R18 the number %s is 422, never rounded',
    async (source) => {
      expect(await outcomeOf(source)).toEqual(REJECTED);
    },
  );

  test.each(TOO_MANY_DIGITS.filter((source) => !source.includes('e')))(
    'R18 the string %s is 422, never rounded',
    async (source) => {
      expect(await outcomeOf(`"${source}"`)).toEqual(REJECTED);
    },
  );

  test.each([0.1 + 0.2, 1.1 * 3, 4.35 * 100])(
    'R18 the inexact sum or product %d is 422',
    async (number) => {
      expect(await outcomeOf(String(number))).toEqual(REJECTED);
    },
  );

  test.each([...NUMERALS, ...GROUPED, ...SPACED, ...WORDS])(
    'R19 the string %j is 422',
    async (text) => {
      expect(await outcomeOf(`"${text}"`)).toEqual(REJECTED);
    },
  );

  test.each(OTHERS)('R19 %s is 422', async (source) => {
    expect(await outcomeOf(source)).toEqual(REJECTED);
  });

  test('R19 a missing price is 422', async () => {
    const { status, body } = await shop.rest('POST', PRODUCT, {
      as: writer,
      json: { name: 'Pen', barcode: shop.newBarcode() },
    });
    expect([status, body]).toEqual([
      422,
      { detail: [{ type: 'missing', loc: ['body', 'price'], msg: 'Field required' }] },
    ]);
  });

  test.each(['NaN', 'Infinity', '-Infinity', '-0.01', '10000000000', '9999999999.991', '0.001'])(
    'R19 a database constraint rejects %s on insert and on update',
    async (price) => {
      const { pk } = await shop.makeProduct();
      const insert = `insert into product (name, barcode, price, created_at, updated_at) values ('Pen', '${shop.newBarcode()}', '${price}', now(), now())`;
      await expect(shop.sql(insert)).rejects.toThrow('product_price_check');
      await expect(
        shop.sql(`update product set price = '${price}' where pk = ${pk}`),
      ).rejects.toThrow('product_price_check');
      expect(await shop.sql('select price::text as price from product')).toEqual([
        { price: '9.99' },
      ]);
    },
  );

  async function outcomeOf(source: string) {
    const rest = await createWith(source);
    const barcode = shop.newBarcode();
    const text = `{"query":${JSON.stringify(CREATE)},"variables":{"input":{"name":"Pen","barcode":"${barcode}","price":${source}}}}`;
    const graphql = await shop.rest('POST', '/graphql', {
      as: writer,
      body: text,
      headers: { 'Content-Type': 'application/json' },
    });
    return {
      rest: [rest.status, rest.body.detail],
      graphql: graphql.body.errors[0].extensions.code,
      stored: await shop.sql('select * from product'),
      after: (await createWith('9.99')).status,
    };
  }
});

test.each([
  'NaN',
  'Infinity',
  '-Infinity',
  '0.1+0.2',
  '0x10',
  '1_000',
  '.5',
  '5.',
  '+5',
  '012',
  '1n',
])('R18 the bare word %s is not JSON: 400', async (source) => {
  expect((await createWith(source)).status).toBe(400);
  expect(await shop.sql('select * from product')).toEqual([]);
});

test.each([
  '19.999',
  '0.005',
  '-0.01',
  '1e10',
  '9007199254740993.01',
  '0.30000000000000004',
  '"0.005"',
  'null',
])('R18 %s is rejected in updates and as a literal in a document, too', async (source) => {
  const { pk } = await shop.makeProduct();
  const barcode = shop.newBarcode();
  for (const query of [
    `mutation { updateProduct(pk: "${pk}", input: { price: ${source} }) { price } }`,
    `mutation { createProduct(input: { name: "Pen", barcode: "${barcode}", price: ${source} }) { price } }`,
  ].slice(source === 'null' ? 1 : 0)) {
    expect(codes(await shop.graphql(query, {}, { as: writer }))).toEqual([
      source === 'null' ? expect.any(String) : 'BAD_USER_INPUT',
    ]);
  }
  expect(await shop.sql('select price::text as price from product')).toEqual([{ price: '9.99' }]);
});

test('R20 a thousand times 0.10 is exactly 100.00', async () => {
  const rounds = sized(50, 3);
  const create = async () => (await createWith('0.10')).status;
  for (let round = 0; round < rounds; round++) {
    expect(await Promise.all(Array.from({ length: 20 }, create))).toEqual(
      Array<number>(20).fill(201),
    );
  }
  expect(
    await shop.sql('select sum(price)::text as sum, count(*)::int as count from product'),
  ).toEqual([{ sum: `${2 * rounds}.00`, count: 20 * rounds }]);
});

test('R20 every number of cents is read back as it was sent', async () => {
  const prices = Array.from(
    { length: 100 },
    (_, cents) =>
      `${Math.floor(cents * 97_531_864) % 10_000_000_000}.${String(cents).padStart(2, '0')}`,
  );
  const made = await Promise.all(prices.map((price) => createWith(price)));
  expect(made.map(({ body }) => (body.price as number).toFixed(2))).toEqual(prices);
  const pks = made.map(({ body }) => Number(body.pk));
  const stored = await shop.sql('select pk::int, price::text as price from product order by pk');
  expect(new Map(stored.map(({ pk, price }) => [pk, price]))).toEqual(
    new Map(pks.map((pk, index) => [pk, prices[index]])),
  );
});

/** Creates a product with the price as written, so that no digit is lost. */
function createWith(source: string): Promise<Answer> {
  const body = `{"name":"Pen","barcode":"${shop.newBarcode()}","price":${source}}`;
  return shop.rest('POST', PRODUCT, {
    as: writer,
    body,
    headers: { 'Content-Type': 'application/json' },
  });
}
