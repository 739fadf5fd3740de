import { describe, expect, test } from '../support/jest.ts';
import { useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const BAD = { name: '', barcode: '4006381333932', price: '1.999' };
const BAD_LITERALS = 'name: "", barcode: "4006381333932", price: 1.999';
const MISTAKES = [
  { field: 'name', message: 'String should have at least 1 character' },
  { field: 'barcode', message: expect.stringMatching(/^The check digit does not hold/) },
  { field: 'price', message: 'A price has at most 2 decimal places' },
];

interface Told {
  extensions: { code: string; fields?: { field: string; message: string }[] };
}

describe('every mistake of an input is told in one round', () => {
  test('in variables, by literals, and on REST, with the same fields and messages', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const answers = [
      await shop.graphql(CREATE, { input: BAD }, { as }),
      await shop.graphql(`mutation { createProduct(input: { ${BAD_LITERALS} }) { pk } }`, {}, { as }),
      await shop.graphql(
        'mutation ($name: String!, $code: EAN13!, $cost: Price!) { createProduct(input: { name: $name, barcode: $code, price: $cost }) { pk } }',
        { name: BAD.name, code: BAD.barcode, cost: BAD.price },
        { as },
      ),
    ];
    for (const answer of answers) {
      expect([answer.status, answer.body.data]).toEqual([200, null]);
      expect(answer.body.errors).toEqual([
        expect.objectContaining({ path: ['createProduct'], extensions: { code: 'BAD_USER_INPUT', fields: MISTAKES } }),
      ]);
    }
    const rest = await shop.rest('POST', '/api/v1/shop/product/', { as, json: BAD });
    expect(rest.body.detail.map(({ loc, msg }: { loc: string[]; msg: string }) => ({ field: loc[1], message: msg }))).toEqual(MISTAKES);
    expect(await shop.sql('select * from product')).toEqual([]);
  });

  test('of a change', async () => {
    await shop.makeProduct();
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const answer = await shop.graphql(`mutation { updateProduct(pk: 1, input: { ${BAD_LITERALS} }) { pk } }`, {}, { as });
    expect(fieldsOf(answer)).toEqual(MISTAKES);
  });

  test('of an API key: its name, its scopes and when it ends', async () => {
    const query = 'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }';
    const as = await shop.makeUser();
    for (const expiresAt of ['tomorrow', '2000-01-01T00:00:00Z']) {
      const answer = await shop.graphql(query, { input: { name: '', scopes: ['x'], expiresAt } }, { as });
      expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['name', 'scopes.0', 'expiresAt']);
    }
  });

  test('of a filter, in variables and by literals', async () => {
    const filter = { search: 'x'.repeat(256), barcodeIn: ['4006381333931', '1', ''], priceMin: '1,5', createdSince: 'now' };
    const literals = `{ search: "${filter.search}", barcodeIn: ["4006381333931", "1", ""], priceMin: "1,5", createdSince: "now" }`;
    const answers = [
      await shop.graphql('query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }', { filter }),
      await shop.graphql(`{ products(filter: ${literals}) { totalCount } }`),
    ];
    const places = ['search', 'barcodeIn.1', 'barcodeIn.2', 'priceMin', 'createdSince'].map((name) => `filter.${name}`);
    for (const answer of answers) {
      expect(codesOf(answer)).toEqual(['BAD_USER_INPUT']);
      expect(fieldsOf(answer).map(({ field }) => field)).toEqual(places);
    }
  });

  test.each(['4006381333931', '{ a: 1 }', '["4006381333931"]', 'true', '4006381333931.0', 'ABC', '"x"'])(
    'a barcode is text: the literal %s is refused at the argument',
    async (literal) => {
      const answer = await shop.graphql(`{ productByBarcode(barcode: ${literal}) { pk } }`);
      expect(answer.body.data).toEqual({ productByBarcode: null });
      expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['barcode']);
    },
  );

  test('a condition of the audit trail is refused, too', async () => {
    const as = await shop.makeUser({ scopes: ['audit:read'] });
    const answer = await shop.graphql('{ auditEntries(filter: { since: "x", until: 1 }) { totalCount } }', {}, { as });
    expect(codesOf(answer)).toEqual(['BAD_USER_INPUT']);
    expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['filter.since', 'filter.until']);
  });

  test('fifty at most: the last one says that there are others', async () => {
    const barcodeIn = Array.from({ length: 100 }, () => 'x');
    const answer = await shop.graphql('query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }', {
      filter: { barcodeIn },
    });
    const fields = fieldsOf(answer);
    expect(fields).toHaveLength(50);
    expect(fields.at(-1)).toEqual({ field: '', message: 'There are more mistakes' });
    const tooMany = await shop.graphql('query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }', {
      filter: { barcodeIn: [...barcodeIn, 'x'] },
    });
    expect(fieldsOf(tooMany)).toEqual([{ field: 'filter.barcodeIn', message: 'names at most 100 barcodes' }]);
  });
});

describe('what only graphql-js refuses is told with what the scalars refuse', () => {
  const { name: _, ...unnamed } = BAD;

  test.each<[string, string, Record<string, unknown>, RequestOptions]>([
    ['a missing field, in variables', CREATE, { input: unnamed }, {}],
    ['an unknown field, in variables', CREATE, { input: { ...BAD, colour: 'red' } }, {}],
    ['a name that is no text, in variables', CREATE, { input: { ...BAD, name: 1 } }, { headers: { Accept: 'application/json' } }],
    ['a missing field, by literals', 'mutation { createProduct(input: { barcode: "4006381333932", price: 1.999 }) { pk } }', {}, {}],
    ['an unknown field, by literals', `mutation { createProduct(input: { ${BAD_LITERALS}, colour: "red" }) { pk } }`, {}, {}],
  ])('%s', async (_what, query, variables, options) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    // A document that is refused is remembered.
    for (let times = 0; times < 2; times++) {
      const answer = await shop.graphql(query, variables, { as, ...options });
      expect(answer.body).not.toHaveProperty('data');
      expect(answer.body.errors.length).toBeGreaterThan(1);
      expect(answer.body.errors.at(-1).extensions).toEqual({ code: 'BAD_USER_INPUT', fields: MISTAKES.slice(1) });
    }
    expect(await shop.sql('select * from product')).toEqual([]);
  });

  test('each with its place: in a list, at an argument, and in a variable', async () => {
    const query = `query ($code: EAN13!, $more: [EAN13!], $first: Int) {
      a: products(first: $first, filter: { barcodeIn: ["4006381333931", "x"] }) { totalCount }
      b: products(filter: { barcodeIn: $more }) { totalCount }
      c: productByBarcode(barcode: "y") { pk }
      d: productByBarcode(barcode: $code) { pk }
    }`;
    const answer = await shop.graphql(query, { code: 'z', more: ['4006381333931', ''], first: 'many' });
    expect(answer.status).toBe(400);
    expect(answer.body.errors.map((error: Told) => error.extensions.fields?.map(({ field }) => field))).toEqual([
      ['first'],
      ['barcodeIn.1', 'barcode', 'code', 'more.1'],
    ]);
  });

  test('a document that is refused is refused the same whatever its variables are', async () => {
    const query = 'query ($code: EAN13!) { productByBarcode(barcode: $code) { none } }';
    const [good, bad] = [await shop.graphql(query, { code: '4006381333931' }), await shop.graphql(query, { code: 'x' })];
    expect(codesOf(good)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect(bad.text).toBe(good.text);
  });
});

describe('a caller who may not write is told that first', () => {
  test.each<[string, string, Record<string, unknown>]>([
    ['in variables', CREATE, { input: BAD }],
    ['by literals', `mutation { createProduct(input: { ${BAD_LITERALS} }) { pk } }`, {}],
  ])('%s', async (_where, query, variables) => {
    expect(codesOf(await shop.graphql(query, variables))).toEqual(['UNAUTHENTICATED']);
    expect(codesOf(await shop.graphql(query, variables, { as: await shop.makeUser() }))).toEqual(['FORBIDDEN']);
  });
});

function fieldsOf({ body }: Answer): { field: string; message: string }[] {
  return body.errors.flatMap(({ extensions }: Told) => extensions.fields ?? []);
}

function codesOf({ body }: Answer): string[] {
  return body.errors.map(({ extensions }: Told) => extensions.code);
}
