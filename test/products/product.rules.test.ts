import { expect, test } from '../support/jest.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };

test.each([
  [
    'two neighbours swapped',
    '4006381333937',
    'ean13_check_digit',
    'Invalid check digit; expected 1, unless digits 4 and 5 are swapped',
  ],
  [
    'two digits of a UPC-A swapped',
    '0036000291542',
    'ean13_check_digit',
    'Invalid check digit; expected 4, unless digits 11 and 12 are swapped',
  ],
  [
    'several possible swaps',
    '4006381333939',
    'ean13_check_digit',
    'Invalid check digit; expected 1',
  ],
  [
    'a UPC-A',
    '036000291452',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): prefix this UPC-A with 0',
  ],
  [
    'a UPC-A with a wrong digit',
    '036000291453',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13)',
  ],
  [
    'a UPC-A in groups',
    '0 36000-29145 2',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove spaces and hyphens, and prefix this UPC-A with 0',
  ],
  [
    'a GTIN-14',
    '04006381333931',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove the leading 0 of this GTIN-14',
  ],
  [
    'spaces between',
    '4 006381 333931',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove spaces and hyphens',
  ],
  [
    'hyphens between',
    '978-0-201-37962-4',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove spaces and hyphens',
  ],
  [
    'non-breaking spaces and dashes between',
    '978\u00a00\u2013201\u201337962\u20134',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove spaces and hyphens',
  ],
  [
    'spaces around',
    ' 4006381333931 ',
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove spaces and hyphens',
  ],
  ...["'4006381333931", '’4006381333931'].map((barcode): [string, string, string, string] => [
    'an apostrophe before',
    barcode,
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): remove the apostrophe',
  ]),
  ...['4.00638E+12', '4,00638e+12', '4E+12', '4.00638133393e12', '4006381333931.0'].map(
    (barcode): [string, string, string, string] => [
      `a number, ${barcode}`,
      barcode,
      'ean13_digits',
      'A barcode must have 13 digits (EAN-13): a program turned it into a number; store barcodes as text',
    ],
  ),
  ...['36000291452', '96385074', '1'].map((barcode): [string, string, string, string] => [
    `zeros lost, ${barcode}`,
    barcode,
    'ean13_digits',
    'A barcode must have 13 digits (EAN-13): leading zeros may be lost; store barcodes as text',
  ]),
  ['a tab between', '4006381\t333931', 'ean13_digits', 'A barcode must have 13 digits (EAN-13)'],
])(
  'barcode: the error names the likely mistake, by REST and GraphQL: %s',
  async (_mistake, barcode, type, msg) => {
    expect((await create({ ...TRAY, barcode })).body).toEqual({
      detail: [{ type, loc: ['body', 'barcode'], msg }],
    });
    const byGraphql = await shop.graphql(
      'query ($barcode: EAN13!) { productByBarcode(barcode: $barcode) { pk } }',
      { barcode },
    );
    expect(byGraphql.body.errors[0].message).toContain(msg);
    expect(await stored()).toBe(0);
  },
);

test.each([
  ['0000000000000', '0000000', 'use within a company'],
  ['0212345678909', '021', 'use within a region, such as goods sold by weight'],
  ['0412345678903', '041', 'use within a company'],
  ['0512345678900', '051', 'coupons'],
  ['2912345678906', '291', 'use within a region, such as goods sold by weight'],
  ['9801234567892', '980', 'refund receipts'],
  ['9841234567898', '984', 'coupons'],
  ['9912345678909', '991', 'coupons'],
])('barcode: %s is accepted, and GraphQL warns of its prefix', async (barcode, prefix, use) => {
  const { status, body } = await create({ ...TRAY, barcode });
  expect([status, Object.keys(body)]).toEqual([201, ['pk', 'name', 'barcode', 'price']]);
  const { data } = (
    await shop.graphql('query ($pk: ID!) { product(pk: $pk) { barcodeWarning } }', {
      pk: String(body.pk),
    })
  ).body;
  expect(data.product.barcodeWarning).toBe(
    `GS1 reserves prefix ${prefix} for ${use}; elsewhere this barcode may identify something else.`,
  );
});

test.each([
  '0000001000009',
  '0012345678905',
  '0036000291452',
  '4006381333931',
  '9770000000003',
  '9780201379624',
  '9791234567896',
])('barcode: %s has no warning', async (barcode) => {
  const { pk } = await shop.makeProduct({ barcode });
  const { data } = (
    await shop.graphql('query ($pk: ID!) { product(pk: $pk) { barcodeWarning } }', {
      pk: String(pk),
    })
  ).body;
  expect(data).toEqual({ product: { barcodeWarning: null } });
});

test('barcode: the database rejects invalid check digits and duplicates', async () => {
  const { pk } = await shop.makeProduct({ barcode: '4006381333931' });
  await shop.makeProduct({ barcode: '5901234123457' });
  await expect(
    shop.sql(`update product set barcode = '4006381333930' where pk = ${pk}`),
  ).rejects.toThrow('product_barcode_check');
  await expect(
    shop.sql(`update product set barcode = '5901234123457' where pk = ${pk}`),
  ).rejects.toThrow('product_barcode_unique');
});

test.each([
  ' tray',
  'tray ',
  '  tray\t',
  '\n tray \r\n',
  '\u00a0tray\u00a0',
  '\u3000tray\ufeff',
  '\u2028tray\u2029',
  `${' '.repeat(300)}tray`,
])('name: %j is trimmed', async (name) => {
  const answer = await create({ ...TRAY, name });
  expect(answer.status).toBe(201);
  expect(answer.body.name).toBe('tray');
  expect(await shop.sql('select name from product')).toEqual([{ name: 'tray' }]);
});

test.each([
  ['name', '""', 'string_too_short', 'String should have at least 1 character'],
  ['name', `"${'x'.repeat(256)}"`, 'string_too_long', 'String should have at most 255 characters'],
  ['name', 'true', 'string_type', 'Input should be a valid string'],
  ['price', '0.005', 'decimal_max_places', 'A price has at most 2 decimal places'],
  ['price', '-0.01', 'greater_than_equal', 'A price is 0 or more'],
  ['price', '"10000000000"', 'less_than_equal', 'A price is at most 9999999999.99'],
  ['price', '1e-7', 'decimal_max_places', 'A price has at most 2 decimal places'],
  [
    'price',
    '12.100000000000000000001',
    'decimal_max_places',
    'A price has at most 2 decimal places',
  ],
  [
    'price',
    '"12.100000000000000000001"',
    'decimal_max_places',
    'A price has at most 2 decimal places',
  ],
  ['price', '1e400', 'less_than_equal', 'A price is at most 9999999999.99'],
  ['price', '-1e-2', 'greater_than_equal', 'A price is 0 or more'],
  [
    'price',
    '"1e2"',
    'decimal_parsing',
    'A price is a number or decimal text: write it without an exponent',
  ],
  ...['12,50', '1,234.50', '1.234,50', "1'234.50", '1 234.50'].map(
    (text): [string, string, string, string] => [
      'price',
      JSON.stringify(text),
      'decimal_parsing',
      'A price is a number or decimal text: use a decimal point, not a comma, and no thousands separators',
    ],
  ),
  ['price', 'true', 'decimal_type', 'A price is a number or decimal text'],
])('%s: %s is rejected as %s: %s', async (field, source, type, msg) => {
  const answer = await shop.rest('POST', PRODUCT, {
    as: await writer(),
    body: `{"name":"Walnut tray","barcode":"4006381333931","price":12.5,"${field}":${source}}`,
    headers: { 'Content-Type': 'application/json' },
  });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({ detail: [{ type, loc: ['body', field], msg }] });
  expect(await stored()).toBe(0);
});

test('an error names every invalid field, and echoes none', async () => {
  const answer = await create({ name: 'SECRET\0', barcode: 'SECRET', price: 'SECRET' });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [
      {
        type: 'string_control_characters',
        loc: ['body', 'name'],
        msg: 'String should have no control characters',
      },
      {
        type: 'ean13_digits',
        loc: ['body', 'barcode'],
        msg: 'A barcode must have 13 digits (EAN-13)',
      },
      {
        type: 'decimal_parsing',
        loc: ['body', 'price'],
        msg: 'A price is a number or decimal text',
      },
    ],
  });
  expect(answer.text + JSON.stringify([...answer.headers])).not.toContain('SECRET');
});

function writer() {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

async function create(json: unknown): Promise<Answer> {
  return shop.rest('POST', PRODUCT, { as: await writer(), json });
}

async function stored(): Promise<number> {
  return (await shop.sql('select pk from product')).length;
}
