import { describe, expect, test } from '../support/jest.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const BAD = { name: '', barcode: '4006381333932', price: '1.999' };
const BAD_LITERALS = 'name: "", barcode: "4006381333932", price: 1.999';
const TOO_SHORT = 'String should have at least 1 character';
const MISTAKES = [
  { field: 'name', message: TOO_SHORT },
  { field: 'barcode', message: expect.stringMatching(/^Invalid check digit/) },
  { field: 'price', message: 'A price has at most 2 decimal places' },
];

interface InputError {
  extensions: { code: string; fields?: { field: string; message: string }[] };
}

describe('all errors of an input are reported at once', () => {
  test('in variables, by literals, and on REST, with the same fields and messages', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const answers = [
      await shop.graphql(CREATE, { input: BAD }, { as }),
      await shop.graphql(
        `mutation { createProduct(input: { ${BAD_LITERALS} }) { pk } }`,
        {},
        { as },
      ),
      await shop.graphql(
        'mutation ($name: String!, $code: EAN13!, $cost: Price!) { createProduct(input: { name: $name, barcode: $code, price: $cost }) { pk } }',
        { name: BAD.name, code: BAD.barcode, cost: BAD.price },
        { as },
      ),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.body.data]).toEqual([200, null]);
      expect(answer.body.errors).toEqual([
        expect.objectContaining({
          path: ['createProduct'],
          extensions: { code: 'BAD_USER_INPUT', fields: MISTAKES },
        }),
      ]);
    }
    const rest = await shop.rest('POST', '/api/v1/shop/product/', { as, json: BAD });
    expect(
      rest.body.detail.map(({ loc, msg }: { loc: string[]; msg: string }) => ({
        field: loc[1],
        message: msg,
      })),
    ).toEqual(MISTAKES);
    expect(await shop.sql('select * from product')).toEqual([]);
  });

  test('of a filter, in variables and by literals', async () => {
    const filter = {
      search: 'x'.repeat(256),
      barcodeIn: ['4006381333931', '1', ''],
      priceMin: '1,5',
      createdSince: 'now',
    };
    const literals = `{ search: "${filter.search}", barcodeIn: ["4006381333931", "1", ""], priceMin: "1,5", createdSince: "now" }`;
    const answers = [
      await shop.graphql(
        'query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }',
        { filter },
      ),
      await shop.graphql(`{ products(filter: ${literals}) { totalCount } }`),
    ];
    const paths = ['search', 'barcodeIn.1', 'barcodeIn.2', 'priceMin', 'createdSince'].map(
      (name) => `filter.${name}`,
    );
    for (const answer of answers) {
      expect(codes(answer)).toEqual(['BAD_USER_INPUT']);
      expect(fieldsOf(answer).map(({ field }) => field)).toEqual(paths);
    }
  });

  test.each([
    '4006381333931',
    '{ a: 1 }',
    '["4006381333931"]',
    'true',
    '4006381333931.0',
    'ABC',
    '"x"',
  ])('a barcode is a string: the literal %s is rejected at the argument', async (literal) => {
    const answer = await shop.graphql(`{ productByBarcode(barcode: ${literal}) { pk } }`);
    expect(answer.body.data).toEqual({ productByBarcode: null });
    expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['barcode']);
  });

  test('at most fifty: the last one says that others are omitted', async () => {
    const barcodeIn = Array.from({ length: 100 }, () => 'x');
    const answer = await shop.graphql(
      'query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }',
      {
        filter: { barcodeIn },
      },
    );
    const fields = fieldsOf(answer);
    expect(fields).toHaveLength(50);
    expect(fields.at(-1)).toEqual({ field: '', message: 'Further errors omitted' });
    const tooMany = await shop.graphql(
      'query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }',
      {
        filter: { barcodeIn: [...barcodeIn, 'x'] },
      },
    );
    expect(fieldsOf(tooMany)).toEqual([
      { field: 'filter.barcodeIn', message: 'must have at most 100 barcodes' },
    ]);
  });
});

test('graphql-js reports all that it finds in variables before the rules, with their paths: two rounds at most', async () => {
  const as = await shop.makeUser({ scopes: ['products:write'] });
  const { barcode, price } = BAD;
  const first = await shop.graphql(CREATE, { input: { name: 5, price, colour: 'red' } }, { as });
  expect(first.status).toBe(400);
  expect(first.body.errors).toEqual(
    [
      /at "input.name"; String cannot represent a non string value: 5/,
      /Field "barcode" of required type "EAN13!" was not provided/,
      /Field "colour" is not defined by type "ProductInput"/,
    ].map((message) => ({
      message: expect.stringMatching(message),
      locations: expect.any(Array),
      extensions: { code: 'BAD_USER_INPUT' },
    })),
  );
  const second = await shop.graphql(CREATE, { input: { name: '', barcode, price } }, { as });
  expect(fieldsOf(second)).toEqual(MISTAKES);
  expect(await shop.sql('select * from product')).toEqual([]);
});

describe('errors in a document', () => {
  test('have the messages of graphql-js alone', async () => {
    const answer = await shop.graphql(
      'mutation { createProduct(input: { name: 5, price: 1.999, colour: "red" }) { pk } }',
    );
    expect(answer.status).toBe(400);
    const [rejected] = answer.body.errors;
    expect(answer.body).toEqual({
      errors: [
        'Field "ProductInput.barcode" of required type "EAN13!" was not provided.',
        'String cannot represent a non string value: 5',
        'Field "colour" is not defined by type "ProductInput".',
      ].map((message) => ({ ...rejected, locations: expect.any(Array), message })),
    });
    expect(rejected.extensions).toEqual({ code: 'GRAPHQL_VALIDATION_FAILED' });
  });
});

describe('a caller without the write scope gets that error first', () => {
  test.each<[string, string, Record<string, unknown>]>([
    ['in variables', CREATE, { input: BAD }],
    ['by literals', `mutation { createProduct(input: { ${BAD_LITERALS} }) { pk } }`, {}],
  ])('%s', async (_where, query, variables) => {
    expect(codes(await shop.graphql(query, variables))).toEqual(['UNAUTHENTICATED']);
    expect(codes(await shop.graphql(query, variables, { as: await shop.makeUser() }))).toEqual([
      'FORBIDDEN',
    ]);
  });
});

function fieldsOf({ body }: Answer): { field: string; message: string }[] {
  return body.errors.flatMap(({ extensions }: InputError) => extensions.fields ?? []);
}
