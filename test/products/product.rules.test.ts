import { expect, test } from '../support/jest.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };

// Barcode

test.each(['4006381333931', '5901234123457', '0036000291452', '0000000000000', '9780201379624'])(
  'barcode: %s, with a valid check digit, is accepted and stored unchanged',
  async (barcode) => {
    const answer = await create({ ...TRAY, barcode });
    expect(answer.status).toBe(201);
    expect(answer.body.barcode).toBe(barcode);
    expect(await shop.sql('select barcode from product')).toEqual([{ barcode }]);
  },
);

test.each(['0', '2', '3', '4', '5', '6', '8', '9'])(
  'barcode: 400638133393%s is rejected, because the check digit is 1',
  async (digit) => {
    const answer = await create({ ...TRAY, barcode: `400638133393${digit}` });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        {
          type: 'ean13_check_digit',
          loc: ['body', 'barcode'],
          msg: 'Invalid check digit; expected 1',
        },
      ],
    });
    expect(await stored()).toBe(0);
  },
);

test.each([
  '',
  '400638133393',
  '40063813339310',
  '96385074',
  ' 4006381333931',
  '4006381333931 ',
  '4006381333931\n',
  '400638 133393',
  '4006381-33393',
  '+006381333931',
  '400638133393X',
  '٤٠٠٦٣٨١٣٣٣٩٣١',
  '４００６３８１３３３９３１',
  "4006381333931'; drop table product; --",
])('barcode: %j, which is not thirteen ASCII digits, is rejected', async (barcode) => {
  const answer = await create({ ...TRAY, barcode });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [
      {
        type: 'ean13_digits',
        loc: ['body', 'barcode'],
        msg: 'A barcode must have 13 digits (EAN-13)',
      },
    ],
  });
  expect(await stored()).toBe(0);
});

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

test.each([4006381333931, true, ['4006381333931'], { $gt: '' }, { __raw: '1' }, null])(
  'barcode: %j is not a text and rejected',
  async (barcode) => {
    const answer = await create({ ...TRAY, barcode });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        { type: 'string_type', loc: ['body', 'barcode'], msg: 'Input should be a valid string' },
      ],
    });
  },
);

test('barcode: a duplicate is rejected with 409', async () => {
  await create(TRAY);
  const answer = await create({ ...TRAY, name: 'Oak tray' });
  expect(answer.status).toBe(409);
  expect(await stored()).toBe(1);
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

// Price

test.each([
  ['0', '0.00', 0],
  ['-0', '0.00', 0],
  ['0.0', '0.00', 0],
  ['0.01', '0.01', 0.01],
  ['5', '5.00', 5],
  ['12.5', '12.50', 12.5],
  ['12.10', '12.10', 12.1],
  ['1e2', '100.00', 100],
  ['1.25E+1', '12.50', 12.5],
  ['1250e-2', '12.50', 12.5],
  ['1.1', '1.10', 1.1],
  ['8.41', '8.41', 8.41],
  ['1234567890.12', '1234567890.12', 1234567890.12],
  ['9999999999.99', '9999999999.99', 9999999999.99],
  ['"0"', '0.00', 0],
  ['"5"', '5.00', 5],
  ['"12.5"', '12.50', 12.5],
  ['"12.50"', '12.50', 12.5],
  ['"9999999999.99"', '9999999999.99', 9999999999.99],
])(
  'price: %s is accepted, stored as %s and returned as the number %d',
  async (source, text, price) => {
    const answer = await createWithPrice(source);
    const { body } = await shop.rest('GET', `${PRODUCT}1`);
    expect(answer.status).toBe(201);
    expect([answer.body.price, body.price]).toEqual([price, price]);
    expect(await shop.sql('select price::text from product')).toEqual([{ price: text }]);
  },
);

test.each([
  '0.005',
  '19.999',
  '0.001',
  '0.30000000000000004',
  '"12.345"',
  '"0.001"',
  '"0.100000000000000000001"',
])('price: %s has more than two fraction digits and is rejected, never rounded', async (source) => {
  const answer = await createWithPrice(source);
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [
      {
        type: 'decimal_max_places',
        loc: ['body', 'price'],
        msg: 'A price has at most 2 decimal places',
      },
    ],
  });
  expect(await stored()).toBe(0);
});

test.each([
  '12.100000000000000000001',
  '12.099999999999999999999',
  '0.1000000000000000055511151231257827',
  '9007199254740993.01',
  '9999999999.990000001',
  '9999999999.9899999999999',
  '1e-7',
  '1e-400',
  '0.000000000000000000000000000000000000000000000001',
  '-1e-400',
])('price: the digits of the number %s are checked as written, and rejected', async (source) => {
  const answer = await createWithPrice(source);
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [{ type: expect.any(String), loc: ['body', 'price'], msg: expect.any(String) }],
  });
  expect(await stored()).toBe(0);
});

test.each([
  '10000000000',
  '1e10',
  '9999999999.991',
  '"10000000000"',
  '"10000000000.00"',
  '1e21',
  '1e400',
  '"99999999999999999999999999999999"',
])('price: %s is above 9999999999.99 and rejected', async (source) => {
  const answer = await createWithPrice(source);
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [{ type: expect.any(String), loc: ['body', 'price'], msg: expect.any(String) }],
  });
  expect(await stored()).toBe(0);
});

test.each(['-0.01', '-1', '"-0.01"', '"-12.50"'])(
  'price: %s is below 0 and rejected',
  async (source) => {
    const answer = await createWithPrice(source);
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [{ type: 'greater_than_equal', loc: ['body', 'price'], msg: 'A price is 0 or more' }],
    });
    expect(await stored()).toBe(0);
  },
);

test.each([
  '""',
  '" 5 "',
  '"5 "',
  '"5\\n"',
  '"NaN"',
  '"Infinity"',
  '"-Infinity"',
  '"0x10"',
  '"1_000"',
  '"1,5"',
  '"1,000.00"',
  '".5"',
  '"5."',
  '"1e2"',
  '"٥"',
  '"12.50 EUR"',
  '"5\\u0000"',
])('price: the text %s is not a decimal and rejected', async (source) => {
  const answer = await createWithPrice(source);
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [
      {
        type: 'decimal_parsing',
        loc: ['body', 'price'],
        msg: 'A price is a number or decimal text',
      },
    ],
  });
  expect(await stored()).toBe(0);
});

test.each(['null', 'true', '[]', '[5]', '{}', '{"$gt":0}', '{"source":"5"}'])(
  'price: %s is neither a number nor a text and rejected',
  async (source) => {
    const answer = await createWithPrice(source);
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        {
          type: 'decimal_type',
          loc: ['body', 'price'],
          msg: 'A price is a number or decimal text',
        },
      ],
    });
    expect(await stored()).toBe(0);
  },
);

test('price: sums are exact', async () => {
  for (let count = 0; count < 10; count++)
    await create({ ...TRAY, barcode: shop.newBarcode(), price: 0.1 });
  expect(await shop.sql('select sum(price)::text as sum from product')).toEqual([{ sum: '1.00' }]);
});

test.each(['NaN', '-0.01', '10000000000', '12.345', 'Infinity'])(
  'price: the database rejects %s',
  async (price) => {
    await shop.makeProduct();
    await expect(shop.sql(`update product set price = '${price}'`)).rejects.toThrow(
      'product_price_check',
    );
  },
);

// Name

test.each([
  ['one character', 'x'],
  ['255 characters', 'x'.repeat(255)],
  ['255 characters outside the basic plane', '🧀'.repeat(255)],
  ['right-to-left text', 'מגש אגוז'],
  ['a direction override', 'tray \u202etxet'],
  ['joined emoji', 'tray 👩‍👩‍👧‍👦'],
  ['combining marks', 'e\u0301'],
  ['markup', '<script>alert(1)</script>'],
  ['SQL', `'; drop table product; --`],
  ['a line separator', 'a\u2028b'],
  ['a paragraph separator', 'a\u2029b'],
  ['a soft hyphen', 'a\u00adb'],
  ['a noncharacter', 'a\uffffb'],
  ['a backslash and quotes', `\\ " ' \\u0000 %s $1 ?`],
])('name: %s is accepted, and returned unchanged', async (_what, name) => {
  const answer = await create({ ...TRAY, name });
  expect(answer.status).toBe(201);
  expect(answer.body.name).toBe(name);
  expect((await shop.rest('GET', `${PRODUCT}1`)).body.name).toBe(name);
  expect(await shop.sql('select name from product')).toEqual([{ name }]);
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

test.each(['', ' ', ' \t\r\n ', '\u00a0\u3000'])(
  'name: %j has no character and is rejected',
  async (name) => {
    const answer = await create({ ...TRAY, name });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        {
          type: 'string_too_short',
          loc: ['body', 'name'],
          msg: 'String should have at least 1 character',
        },
      ],
    });
    expect(await stored()).toBe(0);
  },
);

test.each([
  ['256 characters', 'x'.repeat(256)],
  ['256 characters outside the basic plane', '🧀'.repeat(256)],
  ['10,000 characters', 'x'.repeat(10_000)],
])('name: %s are too many and rejected', async (_what, name) => {
  const answer = await create({ ...TRAY, name });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [
      {
        type: 'string_too_long',
        loc: ['body', 'name'],
        msg: 'String should have at most 255 characters',
      },
    ],
  });
  expect(await stored()).toBe(0);
});

test.each([
  'a\0b',
  '\0',
  'a\nb',
  'a\tb',
  'a\rb',
  'a\u001bb',
  'a\u007fb',
  'a\u0080b',
  'a\u0085b',
  'tray\u009f',
  'a\ud800b',
  'a\udc00',
  '\ude00\ud83d',
])('name: %j has a control character, or half of one, and is rejected', async (name) => {
  const answer = await create({ ...TRAY, name });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [
      {
        type: 'string_control_characters',
        loc: ['body', 'name'],
        msg: 'String should have no control characters',
      },
    ],
  });
  expect(await stored()).toBe(0);
});

test.each([1, true, ['tray'], { $gt: '' }, { __raw: '1' }, null])(
  'name: %j is not a text and rejected',
  async (name) => {
    const answer = await create({ ...TRAY, name });
    expect(answer.status).toBe(422);
    expect(answer.body).toEqual({
      detail: [
        { type: 'string_type', loc: ['body', 'name'], msg: 'Input should be a valid string' },
      ],
    });
  },
);

// The body as a whole

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

test('a list as the body is rejected', async () => {
  const answer = await create([TRAY]);
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: [{ type: 'dictionary_type', loc: ['body'], msg: 'Input should be a valid dictionary' }],
  });
});

test.each(['null', '1', '"x"', 'true'])('a body that is %s is rejected', async (body) => {
  const answer = await send(body);
  expect([400, 422]).toContain(answer.status);
  expect(await stored()).toBe(0);
});

test('a request without a body is rejected for its missing fields', async () => {
  const answer = await shop.rest('POST', PRODUCT, { as: await writer() });
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: ['name', 'barcode', 'price'].map((field) => ({
      type: 'missing',
      loc: ['body', field],
      msg: 'Field required',
    })),
  });
});

test('the last value of a duplicate field is checked and stored', async () => {
  const accepted = await send(
    '{"name":"","name":"Last","barcode":"x","barcode":"4006381333931","price":-1,"price":2}',
  );
  const rejected = await send('{"name":"First","barcode":"5901234123457","price":2,"price":-1}');
  expect([accepted.status, rejected.status]).toEqual([201, 422]);
  expect(await shop.sql('select name, barcode, price::text from product')).toEqual([
    { name: 'Last', barcode: '4006381333931', price: '2.00' },
  ]);
});

test('members of JavaScript objects are not fields', async () => {
  const answer = await send(
    '{"__proto__":{"name":"x","barcode":"4006381333931","price":1},"constructor":{"prototype":{"name":"x"}}}',
  );
  expect(answer.status).toBe(422);
  expect(answer.body).toEqual({
    detail: ['name', 'barcode', 'price'].map((field) => ({
      type: 'missing',
      loc: ['body', field],
      msg: 'Field required',
    })),
  });
});

function writer() {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

async function create(json: unknown): Promise<Answer> {
  return shop.rest('POST', PRODUCT, { as: await writer(), json });
}

/** Sends this text unchanged, so that every digit of a number arrives. */
async function send(body: string): Promise<Answer> {
  return shop.rest('POST', PRODUCT, {
    as: await writer(),
    body,
    headers: { 'Content-Type': 'application/json' },
  });
}

function createWithPrice(source: string): Promise<Answer> {
  return send(`{"name":"Walnut tray","barcode":"4006381333931","price":${source}}`);
}

async function stored(): Promise<number> {
  return (await shop.sql('select pk from product')).length;
}
