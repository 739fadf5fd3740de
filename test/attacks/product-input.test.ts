import { beforeEach, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const shop = useShop();

const PRODUCT = '/api/v1/shop/product/';
const GOOD = '4006381333931';
const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const BY_PK = 'query ($pk: ID!) { product(pk: $pk) { name barcode price } }';
const SEARCH =
  'query ($filter: ProductFilter) { products(filter: $filter) { nodes { pk } totalCount } }';
/** Part of texts that no response, log line or statement may repeat. */
const CANARY = 'kanarie7';

let writer: User;

beforeEach(async () => {
  writer = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
});

// Id, replaced value, JSON of the request, JSON of the response.
const ACCEPTED: [string, 'name' | 'barcode' | 'price', string, string?][] = [
  ...[
    'x'.repeat(255),
    '𝕏'.repeat(255),
    '\u202eexe.yap\u202c',
    '👨‍👩‍👧‍👦',
    `"><img src=x onerror='alert(1)'>&amp;`,
    `\\ " ' \\u0000 $1 ?`,
  ].map((name): [string, 'name', string] => ['R9', 'name', JSON.stringify(name)]),
  ...[GOOD, '0036000291452', '5901234123457', '0000000000000'].map(
    (barcode): [string, 'barcode', string] => ['R14', 'barcode', JSON.stringify(barcode)],
  ),
  ...Object.entries({
    '0': '0',
    '-0': '0',
    '1e2': '100',
    '1250e-2': '12.5',
    '0.01': '0.01',
    '9999999999.99': '9999999999.99',
  }).map(([sent, read]): [string, 'price', string, string] => ['R17', 'price', sent, read]),
  ...Object.entries({
    '"12.50"': '12.5',
    '"12.500"': '12.5',
  }).map(([sent, read]): [string, 'price', string, string] => ['R19', 'price', sent, read]),
  ...Object.entries({ '12.500': '12.5', [`12.5${'0'.repeat(400)}`]: '12.5', '12.1': '12.1' }).map(
    ([sent, read]): [string, 'price', string, string] => ['R20', 'price', sent, read],
  ),
];

test.each(ACCEPTED)(
  '%s the %s %s is 201, and every endpoint returns it exactly',
  async (_id, field, sent, read = sent) => {
    const made = await create(field, sent);
    expect(made.status).toBe(201);
    const pk = String(made.body.pk);
    const answers = [
      made,
      await shop.rest('GET', PRODUCT + pk),
      await shop.rest('GET', '/api/v1/shop/products'),
      await shop.rest('GET', '/api/v2/shop/products'),
      await shop.graphql(BY_PK, { pk }),
    ];
    // Compared as text, because a parsed -0 equals 0.
    for (const { text } of answers) expect(text).toContain(`"${field}":${read}`);
    expect(await shop.sql('select scale(price) as scale from product')).toEqual([{ scale: 2 }]);
  },
);

/** The messages of the types of errors. */
const MESSAGES: Record<string, string> = {
  string_too_short: 'String should have at least 1 character',
  string_too_long: 'String should have at most 255 characters',
  string_control_characters: 'String should have no control characters',
  string_type: 'Input should be a valid string',
  ean13_check_digit: 'Invalid check digit; expected 1',
  ean13_digits: 'A barcode must have 13 digits (EAN-13)',
  decimal_max_places: 'A price has at most 2 decimal places',
  less_than_equal: 'A price is at most 9999999999.99',
  greater_than_equal: 'A price is 0 or more',
  decimal_parsing: 'A price is a number or decimal text',
  decimal_type: 'A price is a number or decimal text',
};
const priced = (id: string, type: string, sources: readonly string[]) =>
  sources.map((sent): [string, string, string, string] => [id, 'price', sent, type]);
const texts = (id: string, field: string, type: string, values: readonly unknown[]) =>
  values.map((value): [string, string, string, string] => [id, field, JSON.stringify(value), type]);

const REJECTED: [id: string, field: string, sent: string, type: string][] = [
  ...texts('R9', 'name', 'string_too_short', ['', ' ', ' \t\n\r\u00a0\u2003\u3000\ufeff']),
  ...texts('R9', 'name', 'string_too_long', ['x'.repeat(256), '𝕏'.repeat(256)]),
  ...texts(
    'R9',
    'name',
    'string_control_characters',
    ['\0', '\ud83d', '\u001b[31m', '\r\nSet-Cookie: a=b', '\u007f'].map(
      (text) => `a${text}${CANARY}`,
    ),
  ),
  ...texts('R15', 'barcode', 'ean13_check_digit', ['4006381333930']),
  ...texts('R15', 'barcode', 'ean13_digits', [
    '400638133393',
    '40063813339310',
    '96385074',
    '',
    `${GOOD} `,
    '978-0-306-40615-7',
    `${GOOD}\n`,
    '٤٠٠٦٣٨١٣٣٣٩٣١',
    '４００６３８１３３３９３１',
    `+${GOOD}`,
    `'${GOOD}`,
    '4.00638E+12',
  ]),
  ...texts('R15', 'barcode', 'string_type', [4_006_381_333_931]),
  ...priced('R18', 'decimal_max_places', [
    '0.005',
    '19.999',
    '0.30000000000000004',
    '12.100000000000000000001',
    '1e-7',
    '"0.005"',
    '"12.100000000000000000001"',
  ]),
  ...priced('R18', 'less_than_equal', ['9007199254740993', '1e400', '1e10', '"10000000000"']),
  ...priced('R18', 'greater_than_equal', ['-0.01', '-1e-2', '"-1"']),
  ...texts('R19', 'price', 'decimal_parsing', ['NaN', 'Infinity', '0x10', '1e2', '５', '1_000']),
  ...texts('R19', 'price', 'decimal_parsing', [
    '1,5',
    '1,234.50',
    "1'234.50",
    '.5',
    '+5',
    ' 5 ',
    '',
  ]),
  ...priced('R19', 'decimal_type', ['null', 'true', '[]', '{}', '{"$gt":0}', '{"__raw":"1"}']),
  ...['name', 'barcode'].flatMap((field) =>
    [{ $ne: null }, { __raw: CANARY }].map((value): [string, string, string, string] => [
      'R21',
      field,
      JSON.stringify(value),
      'string_type',
    ]),
  ),
];

test.each(REJECTED)(
  '%s the %s %s is 422 in both APIs, with the field named, not repeated and not stored',
  async (_id, field, sent, type) => {
    const { answer: rest, statements } = await recordStatements(() => create(field, sent));
    expect([rest.status, rest.body.detail]).toEqual([
      422,
      [{ type, loc: ['body', field], msg: MESSAGES[type] }],
    ]);
    const graphql = await shop.rest('POST', '/graphql', {
      as: writer,
      body: `{"query":${JSON.stringify(CREATE)},"variables":{"input":${bodyOf(field, sent)}}}`,
      headers: { 'Content-Type': 'application/json' },
    });
    expect(codes(graphql)).toEqual(['BAD_USER_INPUT']);
    expect(rest.text + shop.logged.join('') + statements.join('')).not.toContain(CANARY);
    expect(await shop.sql('select * from product')).toEqual([]);
    expect((await create('price', '9.99')).status).toBe(201);
  },
);

test.each([
  ['R19', 'price', 'NaN', 'check'],
  ['R19', 'price', '-0.01', 'check'],
  ['R19', 'price', '10000000000', 'check'],
  ['R19', 'price', '0.001', 'check'],
  ['R15', 'barcode', '400638133393', 'check'],
  ['R16', 'barcode', GOOD, 'unique'],
])(
  '%s the database rejects the %s %s on insert and on update',
  async (_id, field, value, constraint) => {
    const { pk } = await shop.makeProduct();
    await shop.makeProduct({ barcode: GOOD });
    const row = { name: 'Pen', barcode: shop.newBarcode(), price: '1', [field]: value };
    const values = Object.values(row).map((text) => `'${text}'`);
    for (const statement of [
      `insert into product (${Object.keys(row).join()}, created_at, updated_at) values (${values.join()}, now(), now())`,
      `update product set ${field} = '${value}' where pk = ${pk}`,
    ])
      await expect(shop.sql(statement)).rejects.toThrow(`product_${field}_${constraint}`);
  },
);

test('R20 every number of cents is read back as it was sent', async () => {
  const prices = Array.from(
    { length: 100 },
    (_, cents) =>
      `${Math.floor(cents * 97_531_864) % 10_000_000_000}.${String(cents).padStart(2, '0')}`,
  );
  const made = await Promise.all(prices.map((price) => create('price', price)));
  expect(made.map(({ body }) => (body.price as number).toFixed(2))).toEqual(prices);
});

test('R15 exactly one of ten check digits is valid, and a mistyped digit at any position is 422', async () => {
  for (const digits of ['400638133393', '000000000000', '123456789012']) {
    const statuses = [];
    for (let last = 0; last < 10; last++)
      statuses.push((await create('barcode', `"${digits}${last}"`)).status);
    expect(statuses.toSorted((a, b) => a - b)).toEqual([201, ...Array<number>(9).fill(422)]);
  }
  for (let place = 0; place < GOOD.length; place++) {
    const other = (Number(GOOD[place]) + 1) % 10;
    const barcode = JSON.stringify(GOOD.slice(0, place) + other + GOOD.slice(place + 1));
    expect((await create('barcode', barcode)).status).toBe(422);
  }
});

test('R16 a duplicate barcode is 409 in both APIs, whatever else differs, until its product is deleted', async () => {
  const { body } = await create('barcode', `"${GOOD}"`);
  const input = { name: 'Other', barcode: GOOD, price: 2 };
  const again = await shop.rest('POST', PRODUCT, { as: writer, json: input });
  expect([again.status, again.body]).toEqual([409, { detail: expect.any(String) }]);
  expect(again.text).not.toMatch(/unique|constraint|duplicate key|product_barcode/i);
  expect(codes(await shop.graphql(CREATE, { input }, { as: writer }))).toEqual(['CONFLICT']);
  expect(await shop.sql('select name from product')).toEqual([{ name: 'Pen' }]);
  const remove = 'mutation ($pk: ID!) { deleteProduct(pk: $pk) { pk } }';
  await shop.graphql(remove, { pk: String(body.pk) }, { as: writer });
  expect((await create('barcode', `"${GOOD}"`)).status).toBe(201);
});

const SQL = [`${CANARY}'; drop table product; --`, `${CANARY}/* */ -- $1 ? ?? :name @name`];

test.each(SQL)('R21 %s is plain text at every endpoint, and in no statement', async (text) => {
  const encoded = encodeURIComponent(text);
  const json = (path: string, values: object) => shop.rest('POST', path, { json: values });
  const form = (values: Record<string, string>) => shop.rest('POST', '/token', { form: values });
  const requests: [number, () => Promise<Answer>][] = [
    [201, () => create('name', JSON.stringify(text))],
    [422, () => create('barcode', JSON.stringify(text))],
    [422, () => create('price', JSON.stringify(text))],
    [401, () => json('/session/login', { username: text, password: text })],
    [401, () => json('/session/logout', { session_key: text })],
    [401, () => json('/api/v2/auth/login', { session_key: text })],
    [401, () => form({ username: text, password: text })],
    [401, () => form({ grant_type: 'refresh_token', refresh_token: text })],
    [401, () => shop.rest('GET', `/api/v2/auth/login?username=${encoded}&password=${encoded}`)],
    [401, () => shop.rest('GET', '/users/me/', { sessionKey: encoded })],
    [404, () => shop.rest('GET', PRODUCT + encoded)],
    [422, () => shop.rest('GET', `/api/v2/shop/products?page=${encoded}`)],
    [200, () => shop.rest('GET', `/api/users?sort=${encoded}`, { as: writer })],
    [200, () => shop.graphql(BY_PK, { pk: text })],
    [200, () => shop.graphql('query ($id: ID!) { node(id: $id) { id } }', { id: text })],
    [200, () => shop.graphql(SEARCH, { filter: { search: text, nameContains: text } })],
  ];
  const { answer, statements } = await recordStatements(async () => {
    const statuses = [];
    for (const [, send] of requests) statuses.push((await send()).status);
    return statuses;
  });
  expect(answer).toEqual(requests.map(([status]) => status));
  expect(statements.length).toBeGreaterThan(0);
  expect(statements.filter((statement) => /kanarie|pg_sleep|drop table/i.test(statement))).toEqual(
    [],
  );
  await shop.graphql(
    `mutation ($text: String!) { addItem(itemId: $text) { itemId }
      createBlogEntry(input: { title: $text, body: $text }) { id } }`,
    { text },
    { as: writer },
  );
  for (const column of ['name from product', 'item_id from item', 'title from blog_entry'])
    expect(Object.values((await shop.sql(`select ${column}`))[0] ?? {})).toEqual([text]);
});

/** A valid product as JSON, with one member as written, so that no digit is lost. */
function bodyOf(field: string, source: string): string {
  const members = { name: '"Pen"', barcode: `"${shop.newBarcode()}"`, price: '1', [field]: source };
  return `{${Object.entries(members)
    .map(([name, value]) => `"${name}":${value}`)
    .join()}}`;
}

function create(field: string, source: string): Promise<Answer> {
  const headers = { 'Content-Type': 'application/json' };
  return shop.rest('POST', PRODUCT, { as: writer, body: bodyOf(field, source), headers });
}
