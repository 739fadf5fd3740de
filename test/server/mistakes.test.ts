import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { Shop, codes, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
const BAD = { name: '', barcode: '4006381333932', price: '1.999' };
const BAD_LITERALS = 'name: "", barcode: "4006381333932", price: 1.999';
const MISTAKES = [
  { field: 'name', message: 'String should have at least 1 character' },
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

describe('errors of graphql-js alone are reported with those of the services', () => {
  const { name: _, ...unnamed } = BAD;

  test.each<[string, string, Record<string, unknown>, RequestOptions, fields?: object[]]>([
    ['a missing field, in variables', CREATE, { input: unnamed }, {}],
    ['an unknown field, in variables', CREATE, { input: { ...BAD, colour: 'red' } }, {}, MISTAKES],
    [
      'a name that is not a string, in variables',
      CREATE,
      { input: { ...BAD, name: 1 } },
      { headers: { Accept: 'application/json' } },
    ],
    [
      'a missing field, by literals',
      'mutation { createProduct(input: { barcode: "4006381333932", price: 1.999 }) { pk } }',
      {},
      {},
    ],
    [
      'an unknown field, by literals',
      `mutation { createProduct(input: { ${BAD_LITERALS}, colour: "red" }) { pk } }`,
      {},
      {},
      MISTAKES,
    ],
  ])('%s', async (_what, query, variables, options, fields = MISTAKES.slice(1)) => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    // A rejected document is cached.
    for (let times = 0; times < 2; times++) {
      const answer = await shop.graphql(query, variables, { as, ...options });
      expect(answer.body).not.toHaveProperty('data');
      expect(answer.body.errors.length).toBeGreaterThan(1);
      expect(answer.body.errors.at(-1).extensions).toEqual({ code: 'BAD_USER_INPUT', fields });
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
    const answer = await shop.graphql(query, {
      code: 'z',
      more: ['4006381333931', ''],
      first: 'many',
    });
    expect(answer.status).toBe(400);
    expect(
      answer.body.errors.map((error: InputError) =>
        error.extensions.fields?.map(({ field }) => field),
      ),
    ).toEqual([['first'], ['filter.barcodeIn.1', 'barcode']]);
  });

  test('an invalid document has the same response whatever its variables are', async () => {
    const query = 'query ($code: EAN13!) { productByBarcode(barcode: $code) { none } }';
    const [good, bad] = [
      await shop.graphql(query, { code: '4006381333931' }),
      await shop.graphql(query, { code: 'x' }),
    ];
    expect(codes(good)).toEqual(['GRAPHQL_VALIDATION_FAILED']);
    expect(bad.text).toBe(good.text);
  });
});

describe('all errors of an input are reported where graphql-js rejects the request, too', () => {
  const ENTRY = 'mutation ($input: BlogEntryInput!) { createBlogEntry(input: $input) { id } }';
  const REQUIRED = 'Field required';
  const TOO_SHORT = 'String should have at least 1 character';

  const NOT_TEXT = 'String cannot represent this value';
  const UNKNOWN = expect.stringContaining('is not defined');
  const BARCODE = expect.stringMatching(/^A barcode/);
  const AS_IN_PRODUCT = { price: REQUIRED, name: TOO_SHORT, barcode: BARCODE };

  test.each<[string, string, Record<string, unknown>, Record<string, unknown>]>([
    ['a missing field, in variables', CREATE, { input: { name: '', barcode: '1' } }, AS_IN_PRODUCT],
    [
      'a missing field, in literals',
      'mutation { createProduct(input: { name: "", barcode: "1" }) { pk } }',
      {},
      AS_IN_PRODUCT,
    ],
    [
      'a missing variable, in an object of literals and variables',
      'mutation ($name: String!, $cost: Price!) { createProduct(input: { name: $name, barcode: "1", price: $cost }) { pk } }',
      { name: '' },
      { cost: REQUIRED, name: TOO_SHORT, barcode: BARCODE },
    ],
    [
      'a field of another type, in variables',
      ENTRY,
      { input: { title: 5, body: '' } },
      { title: NOT_TEXT, body: TOO_SHORT },
    ],
    [
      'a field of another type, in literals',
      'mutation { createBlogEntry(input: { title: 5, body: "" }) { id } }',
      {},
      { title: NOT_TEXT, body: TOO_SHORT },
    ],
    [
      'a missing field of an entry, in variables',
      ENTRY,
      { input: { body: '' } },
      { title: REQUIRED, body: TOO_SHORT },
    ],
    [
      'a missing field of an entry, in literals',
      'mutation { createBlogEntry(input: { body: "" }) { id } }',
      {},
      { title: REQUIRED, body: TOO_SHORT },
    ],
    [
      'an unknown field',
      ENTRY,
      { input: { colour: 'red', title: '', body: 'x' } },
      { colour: 'Field "colour" is not defined by type "BlogEntryInput".', title: TOO_SHORT },
    ],
    [
      'more errors than graphql-js reports for a document',
      'mutation { createBlogEntry(input: { a: 1, b: 1, c: 1, title: 5, published: 1 }) { id } }',
      {},
      {
        body: REQUIRED,
        a: UNKNOWN,
        b: UNKNOWN,
        c: UNKNOWN,
        title: 'Input should be a valid string',
        published: 'Input should be a valid boolean',
      },
    ],
    [
      'of a change, in variables',
      'mutation ($pk: ID!, $input: ProductPatch!) { updateProduct(pk: $pk, input: $input) { pk } }',
      { input: { name: ' ', price: -1 } },
      { pk: REQUIRED, name: TOO_SHORT, price: expect.any(String) },
    ],
    [
      'of a change without a primary key, in literals',
      'mutation { updateProduct(input: { name: " " }) { pk } }',
      {},
      { pk: REQUIRED, name: TOO_SHORT },
    ],
    [
      'of an API key, at the time of the request',
      'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }',
      { input: { scopes: ['x', 5], expiresAt: '2000-01-01T00:00:00Z' } },
      {
        name: REQUIRED,
        'scopes.1': NOT_TEXT,
        'scopes.0': expect.stringMatching(/^A scope is one of/),
        expiresAt: 'must be in the future',
      },
    ],
    [
      'of a new account',
      'mutation ($input: ConfirmationInput!) { confirmRegistration(input: $input) { id } }',
      { input: { username: '', password: 'short', fullName: '' } },
      {
        token: REQUIRED,
        username: TOO_SHORT,
        password: 'A password must have at least 8 characters',
        fullName: TOO_SHORT,
      },
    ],
    [
      'of each product of a batch',
      'mutation ($inputs: [ProductDraft!]!) { createProducts(inputs: $inputs) { error { code } } }',
      {
        inputs: [
          { name: '', barcode: '4006381333931', price: 1 },
          { name: 'Pen', barcode: '4006381333931' },
        ],
      },
      { 'inputs.1.price': REQUIRED, 'inputs.0.name': TOO_SHORT },
    ],
  ])('%s', async (_what, query, variables, expected) => {
    const as = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const fields = Object.entries(expected).map(([field, message]) => ({ field, message }));
    // A rejected document is cached.
    for (let times = 0; times < 2; times++) {
      const answer = await shop.graphql(query, variables, { as });
      expect(answer.body).not.toHaveProperty('data');
      expect(fieldsOf(answer)).toEqual(fields);
    }
  });

  test('a string of a filter, under its name in the service', async () => {
    const query = 'query ($f: ProductFilter) { products(filter: $f) { totalCount } }';
    const long = 'x'.repeat(256);
    const inVariables = await shop.graphql(query, {
      f: { nameContains: 5, search: long, priceMin: 'x' },
    });
    const inLiterals = await shop.graphql(
      `{ products(filter: { nameContains: 5, search: "${long}", priceMin: "x" }) { totalCount } }`,
    );
    for (const answer of [inVariables, inLiterals]) {
      expect(fieldsOf(answer).map(({ field }) => field)).toEqual([
        'filter.nameContains',
        'filter.search',
        'filter.priceMin',
      ]);
    }
    const [{ message, extensions }] = inVariables.body.errors;
    expect(message).toBe(`filter.nameContains: ${extensions.fields[0].message}`);
  });

  test('has one path, whichever layer rejects the request', async () => {
    const paths = [];
    for (const first of [0, 101, '"x"']) {
      const answer = await shop.graphql(
        `{ products(first: ${first}, filter: { priceMin: "x" }) { totalCount } }`,
      );
      paths.push(fieldsOf(answer).map(({ field }) => field));
    }
    expect(paths).toEqual([
      ['filter.priceMin'],
      ['first', 'filter.priceMin'],
      ['first', 'filter.priceMin'],
    ]);
  });

  test.each([
    ['that is absent', {}, 'Field required'],
    ['that is null', { pk: null }, 'must not be null'],
  ])('a required variable %s is named', async (_what, variables, message) => {
    const answer = await shop.graphql('query ($pk: ID!) { product(pk: $pk) { pk } }', variables);
    expect(fieldsOf(answer)).toEqual([{ field: 'pk', message }]);
    expect(answer.body.errors[0].message).toMatch(/^Variable "\$pk" of /);
  });

  test('errors of another operation of the document are not reported', async () => {
    const query = `query A($code: EAN13!) { productByBarcode(barcode: $code) { pk } } query B { productByBarcode(barcode: "x") { pk } }`;
    const answer = await shop.rest('POST', '/graphql', {
      json: { query, operationName: 'A', variables: {} },
    });
    expect(fieldsOf(answer).map(({ field }) => field)).toEqual(['code']);
  });

  test('at most fifty: the last one says that others are omitted', async () => {
    const inputs = Array.from({ length: 60 }, () => ({
      name: '',
      barcode: '4006381333931',
      price: 1,
    }));
    const answer = await shop.graphql(
      'mutation ($inputs: [ProductDraft!]!, $none: ID!) { createProducts(inputs: $inputs) { error { code } } deleteProduct(pk: $none) { pk } }',
      { inputs },
    );
    const fields = fieldsOf(answer);
    expect(fields).toHaveLength(50);
    expect([fields[0]?.field, fields[1]?.field, fields.at(-1)]).toEqual([
      'none',
      'inputs.0.name',
      { field: '', message: 'Further errors omitted' },
    ]);
  });

  test('the entry about omitted errors of a long list names no field', async () => {
    const scopes = Array.from({ length: 100 }, (_, index) => (index < 10 ? index : 'x'));
    const answer = await shop.graphql(
      'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }',
      { input: { scopes } },
    );
    const others = fieldsOf(answer).filter(({ message }) => message === 'Further errors omitted');
    expect(others.map(({ field }) => field)).toEqual(others.map(() => ''));
    expect(fieldsOf(answer)).toHaveLength(50);
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

describe('a rejection by graphql-js names every error of any input once, in variables as by literals', () => {
  const WORDS = [
    '',
    ' ',
    'Pen',
    '4006381333931',
    '4006381333932',
    '1.999',
    'x'.repeat(300),
    'a\0',
    '2030-01-01T00:00:00Z',
  ];
  const VALUES = [
    ...WORDS,
    null,
    0,
    1,
    -1,
    1.999,
    true,
    [],
    ['x'],
    [null, 1, ''],
    {},
    { name: '' },
  ];
  const INPUTS: [type: string, query: (literal: string) => string, members: string[]][] = [
    [
      'ProductInput',
      (input) => `createProduct(input: ${input}) { pk }`,
      ['name', 'barcode', 'price', 'colour'],
    ],
    [
      'ProductPatch',
      (input) => `updateProduct(pk: 1, input: ${input}) { pk }`,
      ['name', 'barcode', 'price', 'colour'],
    ],
    [
      'BlogEntryInput',
      (input) => `createBlogEntry(input: ${input}) { id }`,
      ['title', 'body', 'published', 'colour'],
    ],
    [
      'ApiKeyInput',
      (input) => `createApiKey(input: ${input}) { key }`,
      ['name', 'scopes', 'expiresAt', 'colour'],
    ],
    [
      '[ProductDraft!]',
      (input) => `createProducts(inputs: ${input}) { error { code } }`,
      ['name', 'barcode', 'price', 'colour'],
    ],
  ];

  test('of 300 random inputs', async () => {
    const as = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const pick = picker(1);
    let rejected = 0;
    for (let times = 0; times < 300; times++) {
      const [type, query, members] = pick(INPUTS);
      const given = members.filter((name) =>
        pick(name === 'colour' ? [false, false, true] : [true, true, true, false]),
      );
      const input = Object.fromEntries(given.map((name) => [name, pick(VALUES)]));
      const answers = [
        await shop.graphql(`mutation ($input: ${type}!) { ${query('$input')} }`, { input }, { as }),
        await shop.graphql(`mutation { ${query(literalOf(input))} }`, {}, { as }),
      ];
      const reported = answers.map((answer) => {
        expect([answer.status < 500, answer.text]).toEqual([
          true,
          expect.not.stringContaining('INTERNAL_SERVER_ERROR'),
        ]);
        return answer.body.errors
          ? fieldsOf(answer).map(({ field }) => field.replace(/^input\./, 'inputs.'))
          : [];
      });
      for (const fields of reported) expect(fields).toEqual([...new Set(fields)]);
      const [inVariables, inLiterals] = reported.map((fields) => fields.toSorted());
      expect({ input, reported: inLiterals }).toEqual({ input, reported: inVariables });
      if (answers[0]?.body.data === undefined) rejected++;
    }
    expect(rejected).toBeGreaterThan(100);
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

/** The value as a literal of a document. */
function literalOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literalOf).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([name, member]) => `${name}: ${literalOf(member)}`)
    .join()}}`;
}

/** Picks from lists at random; the same seed gives the same picks. */
function picker(seed: number): <T>(list: readonly T[]) => T {
  let state = seed;
  return (list) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return list[Math.floor((state / 2 ** 32) * list.length)] as (typeof list)[number];
  };
}
