import { beforeEach, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const GOOD = '4006381333931';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { barcode } }';
const BY_BARCODE =
  'query ($barcode: EAN13!) { productByBarcode(barcode: $barcode) { pk barcode } }';

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ password: null, scopes: ['products:write'] });
});

test.each([
  GOOD,
  '5901234123457',
  '0036000291452',
  '0000000000000',
  '9780306406157',
  '9999999999994',
  '2000000000008',
])('R14 %s, with a correct check digit, is 201 and keeps its zeros', async (barcode) => {
  const answer = await create(barcode);
  expect([answer.status, answer.body.barcode]).toEqual([201, barcode]);
  const found = [
    (await shop.rest('GET', PRODUCT + answer.body.pk)).body.barcode,
    (await shop.rest('GET', '/api/v1/shop/products')).body[0].barcode,
    (await shop.graphql(BY_BARCODE, { barcode })).body.data.productByBarcode.barcode,
  ];
  expect(found).toEqual([barcode, barcode, barcode]);
  expect(await shop.sql('select barcode from product')).toEqual([{ barcode }]);
});

test('R15 exactly one of ten check digits is valid', async () => {
  for (const digits of [
    '400638133393',
    '590123412345',
    '000000000000',
    '999999999999',
    '123456789012',
  ]) {
    const statuses = [];
    for (let last = 0; last < 10; last++) statuses.push((await create(`${digits}${last}`)).status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(9).fill(422)]);
  }
});

test('R15 a mistyped digit at any position is 422', async () => {
  for (let place = 0; place < GOOD.length; place++) {
    const other = (Number(GOOD[place]) + 1) % 10;
    expect((await create(GOOD.slice(0, place) + other + GOOD.slice(place + 1))).status).toBe(422);
  }
  expect(await shop.sql('select * from product')).toEqual([]);
});

test.each([
  ['a wrong check digit', '4006381333930', 'ean13_check_digit'],
  ['twelve digits', '400638133393', 'ean13_digits'],
  ['twelve digits that are a valid UPC-A', '036000291452', 'ean13_digits'],
  ['fourteen digits', '40063813339310', 'ean13_digits'],
  ['fourteen digits that are a valid GTIN-14', '14006381333938', 'ean13_digits'],
  ['a valid EAN-8', '96385074', 'ean13_digits'],
  ['nothing', '', 'ean13_digits'],
  ['a thousand digits', '4'.repeat(1_000), 'ean13_digits'],
  ['a space before it', ` ${GOOD}`, 'ean13_digits'],
  ['a space behind it', `${GOOD} `, 'ean13_digits'],
  ['spaces inside', '4 006381 333931', 'ean13_digits'],
  ['hyphens inside', '978-0-306-40615-7', 'ean13_digits'],
  ['a line break behind it', `${GOOD}\n`, 'ean13_digits'],
  ['a line break before it', `\n${GOOD}`, 'ean13_digits'],
  ['a second line', `${GOOD}\n${GOOD}`, 'ean13_digits'],
  ['a NUL behind it', `${GOOD}\0`, 'ean13_digits'],
  ['half of a surrogate pair', `${GOOD}\ud800`, 'ean13_digits'],
  ['a zero-width space inside', '4006381\u200b333931', 'ean13_digits'],
  ['a byte order mark', `\ufeff${GOOD}`, 'ean13_digits'],
  ['Arabic digits', '٤٠٠٦٣٨١٣٣٣٩٣١', 'ean13_digits'],
  ['Devanagari digits', '४००६३८१३३३९३१', 'ean13_digits'],
  ['full-width digits', '４００６３８１３３３９３１', 'ean13_digits'],
  ['bold digits', '𝟒𝟎𝟎𝟔𝟑𝟖𝟏𝟑𝟑𝟑𝟗𝟑𝟏', 'ean13_digits'],
  ['a digit in a circle', '400638133393①', 'ean13_digits'],
  ['a plus', `+${GOOD}`, 'ean13_digits'],
  ['a plus for a digit', '+006381333931', 'ean13_digits'],
  ['a minus', `-${GOOD}`, 'ean13_digits'],
  ['a fraction', '4006381333931.0', 'ean13_digits'],
  ['an exponent', '4.006381333931e12', 'ean13_digits'],
  ['base 16', '0x3A4C9E5FA8B', 'ean13_digits'],
  ['letters', 'ABCDEFGHIJKLM', 'ean13_digits'],
  ['letters that look like digits', '4OO638l333931', 'ean13_digits'],
  ['a number', 4_006_381_333_931, 'string_type'],
  ['a number of too many digits', 4e30, 'string_type'],
  ['null', null, 'string_type'],
  ['true', true, 'string_type'],
  ['a list', [GOOD], 'string_type'],
  ['an object', { value: GOOD }, 'string_type'],
])('R15 %s is 422 in both APIs, with the field named', async (_what, barcode, type) => {
  const answer = await create(barcode);
  expect([answer.status, answer.body]).toEqual([
    422,
    { detail: [{ type, loc: ['body', 'barcode'], msg: expect.any(String) }] },
  ]);
  const input = { name: 'Pen', barcode, price: 1 };
  const { body } = await shop.graphql(CREATE, { input }, { as: writer });
  expect(body.errors[0].extensions.code).toBe('BAD_USER_INPUT');
  expect((await shop.graphql(BY_BARCODE, { barcode })).body.errors[0].extensions.code).toBe(
    'BAD_USER_INPUT',
  );
  expect(await shop.sql('select * from product')).toEqual([]);
  expect((await create(GOOD)).status).toBe(201);
});

test('R15 a missing barcode is 422', async () => {
  const { status, body } = await shop.rest('POST', PRODUCT, {
    as: writer,
    json: { name: 'Pen', price: 1 },
  });
  expect([status, body]).toEqual([
    422,
    { detail: [{ type: 'missing', loc: ['body', 'barcode'], msg: 'Field required' }] },
  ]);
});

test('R16 a duplicate barcode is 409 in both APIs, whatever else differs', async () => {
  expect((await create(GOOD)).status).toBe(201);
  const again = await shop.rest('POST', PRODUCT, {
    as: writer,
    json: { name: 'Other', barcode: GOOD, price: 2 },
  });
  expect([again.status, again.body]).toEqual([409, { detail: expect.any(String) }]);
  expect(again.text).not.toMatch(/unique|constraint|duplicate key|product_barcode/i);
  const { body } = await shop.graphql(
    CREATE,
    { input: { name: 'Other', barcode: GOOD, price: 2 } },
    { as: writer },
  );
  expect(body.errors[0].extensions.code).toBe('CONFLICT');
  expect(await shop.sql('select name from product')).toEqual([{ name: 'Pen' }]);
  expect((await create('5901234123457')).status).toBe(201);
});

test.each([` ${GOOD}`, `${GOOD} `, `\t${GOOD}`, `${GOOD}\u00a0`])(
  'R16 a stored barcode with surrounding space is 422: %j',
  async (barcode) => {
    expect((await create(GOOD)).status).toBe(201);
    expect((await create(barcode)).status).toBe(422);
    expect(await shop.sql('select barcode from product')).toEqual([{ barcode: GOOD }]);
  },
);

test('R16 a barcode can be used again after its product is deleted', async () => {
  const { body } = await create(GOOD);
  await shop.graphql(
    'mutation ($pk: ID!) { deleteProduct(pk: $pk) { pk } }',
    { pk: String(body.pk) },
    { as: writer },
  );
  expect((await create(GOOD)).status).toBe(201);
});

function create(barcode: unknown): Promise<Answer> {
  return shop.rest('POST', PRODUCT, { as: writer, json: { name: 'Pen', barcode, price: 1 } });
}
