import { expect, test } from '../support/jest.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };

test.each([
  '036000291452',
  '04006381333931',
  '4 006381 333931',
  ' 4006381333931 ',
  "'4006381333931",
  '4.00638E+12',
  '4006381\t333931',
  '٤٠٠٦٣٨١٣٣٣٩٣١',
  '',
])('barcode: anything but 13 digits is rejected: %j', async (barcode) => {
  await expectBarcodeError(barcode, 'ean13_digits', 'A barcode must have 13 digits (EAN-13)');
});

test('barcode: an invalid check digit is rejected, with the expected one', async () => {
  const message = 'Invalid check digit; expected 1';
  await expectBarcodeError('4006381333937', 'ean13_check_digit', message);
});

test('barcode: the database rejects invalid check digits and duplicates', async () => {
  const { pk } = await shop.makeProduct({ barcode: '4006381333931' });
  await shop.makeProduct({ barcode: '5901234123457' });
  await expect(
    shop.sql(`update product set barcode = '400638133393' where pk = ${pk}`),
  ).rejects.toThrow('product_barcode_check');
  await expect(
    shop.sql(`update product set barcode = '5901234123457' where pk = ${pk}`),
  ).rejects.toThrow('product_barcode_unique');
});

const [PLACES, POSITIVE] = ['A price has at most 2 decimal places', 'A price is 0 or more'];
const [LARGEST, DECIMAL] = [
  'A price is at most 9999999999.99',
  'A price is a number or decimal text',
];
test.each([
  ['name', '""', 'string_too_short', 'String should have at least 1 character'],
  ['name', '"   "', 'string_too_short', 'String should have at least 1 character'],
  ['name', `"${'x'.repeat(256)}"`, 'string_too_long', 'String should have at most 255 characters'],
  ['name', '"a\\nb"', 'string_control_characters', 'String should have no control characters'],
  ['name', '"a\\u0000b"', 'string_control_characters', 'String should have no control characters'],
  ['name', 'true', 'string_type', 'Input should be a valid string'],
  ['price', '0.005', 'decimal_max_places', PLACES],
  ['price', '-0.01', 'greater_than_equal', POSITIVE],
  ['price', '"10000000000"', 'less_than_equal', LARGEST],
  ['price', '1e-7', 'decimal_max_places', PLACES],
  ['price', '0.30000000000000004', 'decimal_max_places', PLACES],
  ['price', '12.100000000000000000001', 'decimal_max_places', PLACES],
  ['price', '"12.100000000000000000001"', 'decimal_max_places', PLACES],
  ['price', '1e400', 'less_than_equal', LARGEST],
  ['price', '-1e-2', 'greater_than_equal', POSITIVE],
  ['price', '"1e2"', 'decimal_parsing', DECIMAL],
  ['price', '"12,50"', 'decimal_parsing', DECIMAL],
  ['price', '"1,234.50"', 'decimal_parsing', DECIMAL],
  ['price', `"1'234.50"`, 'decimal_parsing', DECIMAL],
  ['price', '"NaN"', 'decimal_parsing', DECIMAL],
  ['price', '"0x10"', 'decimal_parsing', DECIMAL],
  ['price', 'true', 'decimal_type', DECIMAL],
  ['price', '[]', 'decimal_type', DECIMAL],
])('%s: %s is rejected as %s: %s', async (field, source, type, msg) => {
  const answer = await shop.rest('POST', PRODUCT, {
    as: await writer(),
    body: `{"name":"Walnut tray","barcode":"4006381333931","price":12.5,"${field}":${source}}`,
    headers: { 'Content-Type': 'application/json' },
  });
  expect([answer.status, answer.body]).toEqual([
    422,
    { detail: [{ type, loc: ['body', field], msg }] },
  ]);
  expect(await stored()).toBe(0);
});

/** Throws unless REST and GraphQL reject the barcode with this message. */
async function expectBarcodeError(barcode: string, type: string, msg: string): Promise<void> {
  expect((await create({ ...TRAY, barcode })).body).toEqual({
    detail: [{ type, loc: ['body', 'barcode'], msg }],
  });
  const byGraphql = await shop.graphql(
    'query ($barcode: EAN13!) { productByBarcode(barcode: $barcode) { pk } }',
    { barcode },
  );
  expect(byGraphql.body.errors[0].message).toContain(msg);
  expect(await stored()).toBe(0);
}

function writer() {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

async function create(json: unknown): Promise<Answer> {
  return shop.rest('POST', PRODUCT, { as: await writer(), json });
}

async function stored(): Promise<number> {
  return (await shop.sql('select pk from product')).length;
}
