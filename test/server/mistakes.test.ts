import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Shop, codes, useShop, type Answer } from '../support/shop.ts';

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

  test('of a change', async () => {
    await shop.makeProduct();
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const answer = await shop.graphql(
      `mutation { updateProduct(pk: 1, input: { ${BAD_LITERALS} }) { pk } }`,
      {},
      { as },
    );
    expect(fieldsOf(answer)).toEqual(MISTAKES);
  });

  test('of an API key: its name, its scopes and its expiry', async () => {
    const query = 'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }';
    const as = await shop.makeUser();
    for (const expiresAt of ['tomorrow', '2000-01-01T00:00:00Z']) {
      const answer = await shop.graphql(
        query,
        { input: { name: '', scopes: ['x'], expiresAt } },
        { as },
      );
      expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['name', 'scopes.0', 'expiresAt']);
    }
  });

  test('of a blog entry', async () => {
    const answer = await shop.graphql(
      'mutation { createBlogEntry(input: { title: "", body: "" }) { id } }',
      {},
      { as: await shop.makeUser({ scopes: ['blog:write'] }) },
    );
    expect(fieldsOf(answer)).toEqual([
      { field: 'title', message: TOO_SHORT },
      { field: 'body', message: TOO_SHORT },
    ]);
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

  test('a condition of the audit trail is rejected, too', async () => {
    const as = await shop.makeUser({ scopes: ['audit:read'] });
    const filter = '{ actor: "\\u0000", action: "x", subject: "y", since: "x" }';
    const every = await shop.graphql(
      `{ auditEntries(filter: ${filter}) { totalCount } }`,
      {},
      { as },
    );
    expect(fieldsOf(every).map(({ field }) => field)).toEqual([
      'filter.actor',
      'filter.action',
      'filter.subject',
      'filter.since',
    ]);
    const answer = await shop.graphql(
      '{ auditEntries(filter: { since: "x", until: 1 }) { totalCount } }',
      {},
      { as },
    );
    expect(codes(answer)).toEqual(['BAD_USER_INPUT']);
    expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['filter.since', 'filter.until']);
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

describe('all errors that graphql-js finds in variables are reported at once, by their paths', () => {
  const KEY = 'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }';
  const NOT_A_STRING = 'String cannot represent this value';
  const unknownIn = (type: string, field: string) =>
    `Field "${field}" is not defined by type "${type}".`;

  test('before those of the rules: two rounds at most', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const { barcode, price } = BAD;
    const first = await shop.graphql(CREATE, { input: { name: 5, price, colour: 'red' } }, { as });
    expect([first.status, first.body]).toEqual([
      400,
      {
        errors: [
          badVariable('name', NOT_A_STRING),
          badVariable('barcode', 'Field required'),
          badVariable('colour', unknownIn('ProductInput', 'colour')),
        ],
      },
    ]);
    const second = await shop.graphql(CREATE, { input: { name: '', barcode, price } }, { as });
    expect(fieldsOf(second)).toEqual(MISTAKES);
    expect(await shop.sql('select * from product')).toEqual([]);
  });

  test.each<[string, string, Record<string, unknown>, Record<string, unknown>]>([
    [
      'in a list in an input',
      KEY,
      { input: { name: 5, scopes: ['x', 5] } },
      {
        name: NOT_A_STRING,
        'scopes.1': NOT_A_STRING,
      },
    ],
    [
      'in a list of inputs',
      'mutation ($inputs: [ProductDraft!]!) { createProducts(inputs: $inputs) { error { code } } }',
      {
        inputs: [
          { name: '', barcode: 'x' },
          { name: 'Pen', barcode: 5, price: 1, colour: 'red' },
        ],
      },
      {
        'inputs.0.price': 'Field required',
        'inputs.1.barcode': NOT_A_STRING,
        'inputs.1.colour': unknownIn('ProductDraft', 'colour'),
      },
    ],
    [
      'in several variables',
      'query ($n: Int, $f: ProductFilter, $o: ProductOrder) { products(first: $n, filter: $f, orderBy: $o) { totalCount } }',
      { n: 'x', f: 'y', o: { field: 5 } },
      {
        n: 'Int cannot represent this value',
        f: 'Expected type "ProductFilter" to be an object.',
        field: 'Enum "ProductOrderField" cannot represent this value',
      },
    ],
    [
      'of a text that imitates a path',
      'query ($n: Int) { products(first: $n) { totalCount } }',
      { n: '" at "n.name"; Expected' },
      { n: 'Int cannot represent this value' },
    ],
    [
      'of a name that imitates a path, with a line break',
      'query ($n: Int) { products(first: $n) { totalCount } }',
      { n: { ' at "n.name"': 1, '\n': 1 } },
      { n: 'Int cannot represent this value' },
    ],
  ])('%s, without the value', async (_what, query, variables, expected) => {
    const { body } = await shop.graphql(query, variables);
    expect(body).toEqual({
      errors: Object.entries(expected).map(([field, message]) => badVariable(field, message)),
    });
  });

  test.each([
    ['is absent', {}, 'Field required'],
    ['is null', { pk: null }, 'must not be null'],
  ])('a required variable that %s', async (_what, variables, message) => {
    const { body } = await shop.graphql('query ($pk: ID!) { product(pk: $pk) { pk } }', variables);
    expect(body.errors).toEqual([
      { ...badVariable('pk', message), message: expect.stringMatching(/^Variable "\$pk" of /) },
    ]);
  });
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

  test('do not depend on the variables', async () => {
    const query = 'query ($code: EAN13!) { productByBarcode(barcode: $code) { none } }';
    const [good, bad] = [
      await shop.graphql(query, { code: '4006381333931' }),
      await shop.graphql(query, {}),
    ];
    expect(codes(good)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect(bad.text).toBe(good.text);
  });
});

describe('the time of a rejection is not quadratic in the input', () => {
  const hidden = new Shop({ GRAPHQL_EXPLORER: 'false' });
  beforeAll(() => hidden.start());
  afterAll(() => hidden.stop());

  test.each([' Did you mean ', 'x cannot represent a'])(
    'for a field name of %p, repeated',
    async (part) => {
      const { user: before } = process.cpuUsage();
      const answer = await hidden.graphql(CREATE, {
        input: { [part.repeat(Math.floor(90_000 / part.length))]: 1 },
      });
      expect(answer.status).toBe(400);
      // In µs.
      expect(process.cpuUsage().user - before).toBeLessThan(400_000);
    },
  );
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

/** The error of graphql-js in a variable. */
function badVariable(field: string, message: unknown): object {
  return {
    message: `${field}: ${String(message)}`,
    locations: [expect.anything()],
    extensions: { code: 'BAD_USER_INPUT', fields: [{ field, message }] },
  };
}
