import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '../support/jest.ts';
import { Shop, type Answer, type RequestOptions } from '../support/shop.ts';

// Both use the same rows. All data is created before the first request, so that neither caches an
// older count.
const shop = new Shop();
const plain = new Shop({}, { compiledOperations: false });

/** Compiled, compiled for the response cache, and from the cache. */
const TIMES = [1, 2, 3];
const ALL_FIELDS = '__typename id pk name barcode price createdAt updatedAt';
const PAGE_INFO = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
const FIRST_PAGE = '{ products(first: 3) { totalCount nodes { pk name price } } }';
const LIST = `query ($first: Int, $after: String, $last: Int, $before: String, $filter: ProductFilter, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, filter: $filter, orderBy: $orderBy) {
    totalCount ${PAGE_INFO} edges { cursor node { pk } } nodes { pk name }
  }
}`;
const DAY = '2026-03-01T00:00:00.';

type Values = Record<string, unknown>;
/** Values that are known once the data is created. */
interface Created {
  cursors: Record<string, string[]>;
}

interface Case {
  rule: string;
  query: string;
  variables?: unknown;
  made?: (created: Created) => Values;
  operationName?: unknown;
  extensions?: Values;
  options?: RequestOptions;
}

let created: Created;

beforeAll(async () => {
  await Promise.all([shop.start(), plain.start()]);
  await shop.empty();
  const names = ['Lamp', 'lamp "two"', 'Täble \\ / \u2028', 'Chair 🪑', '<b>Chair</b>', 'a', 'Zz'];
  for (const [index, name] of names.entries()) {
    const createdAt = new Date(`${DAY}${String(100 * (index % 3)).padStart(3, '0')}Z`);
    await shop.makeProduct({
      name,
      price: ['0.00', '0.10', '9999999999.99'][index % 3] ?? '1',
      createdAt,
    });
  }
  const orders = ['PK', 'NAME', 'PRICE', 'CREATED_AT', 'UPDATED_AT'];
  const cursors: Record<string, string[]> = {};
  for (const field of orders) {
    const { body } = await plain.graphql(LIST, { orderBy: { field } });
    cursors[field] = body.data.products.edges.map(({ cursor }: { cursor: string }) => cursor);
  }
  created = { cursors };
});

afterAll(() => Promise.all([shop.stop(), plain.stop()]));

/**
 * The parts that are equal in two responses to the same request: without date, request id, and the
 * framing, as a compressed form is sent with its length only if it is stored.
 */
function comparable({ status, headers, text }: Answer): unknown[] {
  const apart = new Set(['date', 'x-request-id', 'content-length', 'transfer-encoding']);
  const own = [...headers].filter(([name]) => !apart.has(name));
  return [
    status,
    Object.fromEntries(own),
    text.replace(/"requestId":"[\w-]{36}"/g, '"requestId":"…"'),
  ];
}

const pages: Case[] = [
  ['nothing', {}],
  ['first', { first: 3 }],
  ['first: 1', { first: 1 }],
  ['first, all there are', { first: 7 }],
  ['first: 100', { first: 100 }],
  ['last', { last: 3 }],
  ['last, more than there are', { last: 100 }],
  ['first: 0', { first: 0 }],
  ['first: 101', { first: 101 }],
  ['first: -1', { first: -1 }],
  ['last: 0', { last: 0 }],
  ['last: 101', { last: 101 }],
  ['both first and last', { first: 1, last: 1 }],
  [
    'null in every argument',
    { first: null, after: null, last: null, before: null, filter: null, orderBy: null },
  ],
  ['first as text', { first: '3' }],
  ['first with a fraction', { first: 1.5 }],
  ['first past 32 bits', { first: 4294967296 }],
  ['first past the integers of a double', { first: '9007199254740993' }],
  ['a forged cursor', { after: 'WyJ4Il0' }],
  ['a cursor that is not base64url', { after: '%%%' }],
  ['an empty cursor', { before: '' }],
  ['a cursor that is a number', { after: 5 }],
  ['an extra variable', { first: 2, nobody: 1 }],
  ['a variable named __proto__', JSON.parse('{"first":2,"__proto__":{"first":1}}') as Values],
  ['an order without a field', { orderBy: {} }],
  ['an unknown order', { orderBy: { field: 'WEIGHT' } }],
  ['an order of null', { orderBy: { field: null } }],
  ['an order with an extra member', { orderBy: { field: 'PK', x: 1 } }],
  ['an empty filter', { filter: {} }],
  ['a filter', { filter: { search: 'lamp' } }],
  ['a filter of null conditions', { filter: { search: null, priceMin: null } }],
  ['a rejected filter', { filter: { search: 'a\0' } }],
  ['a filter that finds nothing', { filter: { search: 'nothing' } }],
].map(([rule, variables]) => ({
  rule: `a page by variables: ${rule as string}`,
  query: LIST,
  variables,
}));

const orders: Case[] = ['PK', 'NAME', 'PRICE', 'CREATED_AT', 'UPDATED_AT'].flatMap((field) =>
  ['ASC', 'DESC'].flatMap((direction): Case[] => [
    {
      rule: `a page in the order ${field} ${direction}`,
      query: LIST,
      variables: { first: 4, orderBy: { field, direction } },
    },
    {
      rule: `the last page in the order ${field} ${direction}`,
      query: LIST,
      variables: { last: 2, orderBy: { field, direction } },
    },
    {
      // Cursors of a descending list differ, so half of these are rejected.
      rule: `between cursors of ${field} ASC in the order ${field} ${direction}`,
      query: LIST,
      made: ({ cursors }) => ({
        after: cursors[field]?.[1],
        before: cursors[field]?.[5],
        first: 2,
        orderBy: { field, direction },
      }),
    },
  ]),
);

const cursors: Case[] = (
  [
    ['after the first', (at) => ({ after: at.cursors['PK']?.[0], first: 2 })],
    ['after the last', (at) => ({ after: at.cursors['PK']?.at(-1) })],
    ['before the first', (at) => ({ before: at.cursors['PK']?.[0] })],
    ['the last before', (at) => ({ before: at.cursors['PK']?.[4], last: 2 })],
    ['the first before', (at) => ({ before: at.cursors['PK']?.[4], first: 2 })],
    ['the last after', (at) => ({ after: at.cursors['PK']?.[1], last: 2 })],
    [
      'after and before that cross',
      (at) => ({ after: at.cursors['PK']?.[5], before: at.cursors['PK']?.[1] }),
    ],
    ['a cursor of another order', (at) => ({ after: at.cursors['NAME']?.[0] })],
    [
      'a cursor of no filter with a filter',
      (at) => ({ after: at.cursors['PK']?.[0], filter: { search: 'a' } }),
    ],
    ['a cursor with a character more', (at) => ({ after: `${at.cursors['PK']?.[0]}A` })],
  ] satisfies [rule: string, made: (at: Created) => Values][]
).map(([rule, made]) => ({ rule: `a page by cursors: ${rule}`, query: LIST, made }));

const selections: Case[] = (
  [
    ['totalCount alone', '{ products { totalCount } }'],
    ['pageInfo alone', `{ products(last: 2) { ${PAGE_INFO} } }`],
    ['nodes alone', '{ products(first: 2) { nodes { name } } }'],
    ['cursors alone', '{ products(first: 2) { edges { cursor } } }'],
    [
      'cursors of an order by an unselected field',
      '{ products(first: 2, orderBy: {field: CREATED_AT}) { edges { cursor } nodes { barcode } } }',
    ],
    ['__typename alone', '{ products { __typename } }'],
    [
      '__typename at every level',
      '{ __typename products(first: 2) { __typename pageInfo { __typename } edges { __typename node { __typename } } nodes { __typename } } }',
    ],
    [
      'every field of a node',
      `{ products { nodes { ${ALL_FIELDS} } edges { node { ${ALL_FIELDS} } } } }`,
    ],
    [
      'fields in another order',
      '{ products(first: 2) { nodes { updatedAt price pk name id createdAt barcode } edges { cursor } totalCount } }',
    ],
    [
      'aliases at every level',
      '{ p: products(first: 2) { t: totalCount i: pageInfo { n: hasNextPage s: startCursor } e: edges { c: cursor n: node { k: pk l: pk } } n: nodes { x: id } } }',
    ],
    [
      'an alias that is the name of another field',
      '{ products(first: 2) { nodes: edges { node: cursor } edges: nodes { name: pk pk: name } } }',
    ],
    [
      'an alias named __proto__',
      '{ products(first: 2) { __proto__: totalCount nodes { constructor: pk __proto__: name } } }',
    ],
    [
      'the same field twice',
      '{ products(first: 2) { nodes { pk } nodes { name pk } edges { node { pk } } edges { cursor node { name } } pageInfo { hasNextPage } pageInfo { endCursor } } }',
    ],
    [
      'the same root field twice',
      '{ products(first: 2) { nodes { pk } } me { username } products(first: 2) { totalCount nodes { name } } }',
    ],
    [
      'the same root field twice, compiled',
      '{ product(pk: 1) { pk } products(first: 1) { nodes { pk } } product(pk: 1) { name pk } }',
    ],
    [
      'the same field twice, unlike',
      '{ products(first: 2) { nodes { pk } } products(first: 3) { totalCount } }',
    ],
    [
      'a fragment',
      'query { products(first: 2) { ...P } } fragment P on ProductConnection { totalCount nodes { pk } }',
    ],
    [
      'fragments in fragments',
      'query { products(first: 2) { ...A nodes { pk } } } fragment A on ProductConnection { edges { ...B } nodes { ...C } } fragment B on ProductEdge { cursor node { ...C pk } } fragment C on Product { name ...D } fragment D on Node { id }',
    ],
    [
      'a fragment on Query',
      'query { ...Q } fragment Q on Query { products(first: 1) { totalCount } product(pk: 1) { pk } }',
    ],
    [
      'a fragment on Node',
      '{ product(pk: 1) { ... on Node { id __typename ... on Product { name } } } }',
    ],
    ['a fragment without a type', '{ ... { product(pk: 1) { ... { pk ... { name } } } } }'],
    [
      'a fragment with a type',
      '{ products(first: 1) { ... on ProductConnection { nodes { ... on Product { pk } } } } }',
    ],
    ['a fragment of another type', '{ product(pk: 1) { ... on User { username } } }'],
    ['a fragment that is not used', '{ product(pk: 1) { pk } } fragment F on Product { pk }'],
    ['a fragment cycle', '{ product(pk: 1) { ...F } } fragment F on Product { ...F }'],
    ['@include of true', '{ products(first: 1) { totalCount @include(if: true) nodes { pk } } }'],
    ['@skip of all', '{ product(pk: 1) { pk @skip(if: true) } }'],
    ['@skip of the root field', '{ product(pk: 1) @skip(if: true) { pk } me { username } }'],
    [
      '@include on a fragment',
      '{ product(pk: 1) { pk ... @include(if: false) { name } ...F @skip(if: false) } } fragment F on Product { price }',
    ],
    [
      'several root fields',
      '{ a: product(pk: 1) { pk } b: product(pk: 2) { name } c: product(pk: 99) { pk } products(first: 1) { totalCount } }',
    ],
    ['a compiled root field and one that is not', '{ product(pk: 1) { pk } me { username } }'],
    [
      'two pages',
      '{ a: products(first: 1) { nodes { pk } } b: products(last: 1) { nodes { pk } } }',
    ],
    [
      'an error in the middle',
      '{ a: product(pk: 1) { pk } users { totalCount } b: product(pk: 2) { pk } }',
    ],
    ['an error in a field that may be null', '{ nodes(ids: ["x"]) { id } product(pk: 1) { pk } }'],
    [
      'errors in two pages of three',
      '{ a: products(first: 0) { totalCount } b: products(first: 1) { totalCount } c: products(last: 0) { totalCount } }',
    ],
    ['an unknown field', '{ products { weight } }'],
    ['an unknown argument', '{ products(size: 1) { totalCount } }'],
    ['an argument on a field that takes none', '{ product(pk: 1) { name(x: 1) } }'],
    ['a page without a selection', '{ products }'],
    ['an empty selection', '{ products { } }'],
    ['no query at all', ''],
    ['blanks for a query', '  '],
    ['a syntax error', '{ products('],
    ['a comment and commas', '# hot\n{ ,,products(first: 1) { totalCount, } } # end'],
    ['a subscription', 'subscription { products { totalCount } }'],
    ['a definition of a type', 'type X { a: Int } { product(pk: 1) { pk } }'],
    ['an introspection of a type', '{ __type(name: "Product") { name fields { name } } }'],
    ['an introspection of the schema', '{ __schema { queryType { name } types { name } } }'],
    [
      'an introspection beside a page',
      '{ __typename __schema { queryType { name } } products(first: 1) { totalCount } }',
    ],
    ['a directive on the operation', 'query @include(if: true) { product(pk: 1) { pk } }'],
    ['an unknown directive', '{ product(pk: 1) @cached { pk } }'],
    [
      'a query of 11,000 characters',
      `{ products(first: 1) { totalCount } } #${'x'.repeat(11_000)}`,
    ],
    [
      'a compiled query of many aliases',
      `{ ${[...Array(50).keys()].map((at) => `a${at}: product(pk: ${at}) { pk name }`).join(' ')} }`,
    ],
    ['productByBarcode', '{ productByBarcode(barcode: "0012345678905") { pk } }'],
    ['a bad barcode', '{ productByBarcode(barcode: "1") { pk } }'],
  ] as const
).map(([rule, query]) => ({ rule: `a selection: ${rule}`, query }));

const ONE = `query ($pk: ID!) { product(pk: $pk) { ${ALL_FIELDS} } }`;
const PK_BY_DEFAULT = 'query ($pk: ID = 2) { product(pk: $pk) { pk } }';
const FIRST_BY_DEFAULT = 'query ($n: Int = 2) { products(first: $n) { nodes { pk } } }';
const ORDER_BY_DEFAULT = 'query ($d: OrderDirection = ASC)';
const variations: [rule: string, query: string, variables?: Values][] = [
  ['product without its variable', ONE],
  ['product with its variable under another name', ONE, { PK: 1 }],
  [
    'product by a literal',
    '{ product(pk: 1) { pk } a: product(pk: "2") { pk } b: product(pk: 99999999999999999999) { pk } }',
  ],
  ['product without its argument', '{ product { pk } }'],
  ['product of null', '{ product(pk: null) { pk } }'],
  ['product by a default value', PK_BY_DEFAULT],
  ['product by null in place of a default value', PK_BY_DEFAULT, { pk: null }],
  ['a default value, overridden', FIRST_BY_DEFAULT, { n: 1 }],
  ['a default value', FIRST_BY_DEFAULT],
  ['null in place of a default value', FIRST_BY_DEFAULT, { n: null }],
  [
    'a default value in an input',
    'query ($f: ProductOrderField!) { products(orderBy: {field: $f}) { nodes { pk } } }',
    { f: 'NAME' },
  ],
  [
    'null for a variable with a default at a non-null position',
    `${ORDER_BY_DEFAULT} { products(first: 1, orderBy: {field: PK, direction: $d}) { totalCount } }`,
    { d: null },
  ],
  [
    'the same beside a rejected page',
    `${ORDER_BY_DEFAULT} { a: products(after: "x") { totalCount } b: products(orderBy: {field: PK, direction: $d}) { totalCount } }`,
    { d: null },
  ],
  [
    'a required variable that is missing',
    'query ($n: Int!) { products(first: $n) { totalCount } }',
  ],
  ['an undeclared variable', '{ products(first: $n) { totalCount } }', { n: 1 }],
  ['an unused variable', 'query ($n: Int) { products { totalCount } }', { n: 1 }],
  [
    'a variable of a wrong type',
    'query ($n: String) { products(first: $n) { totalCount } }',
    { n: '1' },
  ],
];
const singles: Case[] = [
  ...[
    '1',
    '7',
    '8',
    '0',
    '-1',
    'x',
    '',
    ' 1',
    '01',
    '+1',
    '1.0',
    '1e0',
    '2147483647',
    '2147483648',
    '9007199254740992',
    '9'.repeat(40),
    '\0',
    '１',
  ].map((pk): Case => ({
    rule: `product of the pk ${JSON.stringify(pk)}`,
    query: ONE,
    variables: { pk },
  })),
  ...[1, 1.5, -1, 1e21, true, null, [1], {}].map((pk): Case => ({
    rule: `product of ${JSON.stringify(pk)}, not a string`,
    query: ONE,
    variables: { pk },
  })),
  ...variations.map(([rule, query, variables]): Case => ({ rule, query, variables })),
];

const DIRECTED = `query ($a: Boolean!, $b: Boolean = true) {
  products(first: 1) @include(if: $a) { totalCount @skip(if: $b) nodes { pk ... on Product @include(if: $b) { name } } }
  product(pk: 1) @skip(if: $a) { pk }
}`;
const directed: Case[] = [
  { a: true },
  { a: false },
  { a: true, b: false },
  { a: false, b: false },
  { a: null },
  { b: true },
  { a: 'true' },
].map((variables) => ({
  rule: `@include and @skip by ${JSON.stringify(variables)}`,
  query: DIRECTED,
  variables,
}));

const BY_FIELD =
  'query ($a: Boolean!) { products(first: 1) { totalCount @include(if: $a) nodes { pk name @skip(if: $a) } } }';
directed.push(
  ...[true, false].map((a) => ({
    rule: `@include and @skip of nothing but fields by ${a}`,
    query: BY_FIELD,
    variables: { a },
  })),
);

const SEVERAL =
  'query A { product(pk: 1) { pk } } query B { products(first: 1) { totalCount } } query C { me { username } }';
const ONLY = 'query A { product(pk: 1) { pk } }';
const operations: Case[] = [
  ...['A', 'B', 'C', 'D', '', null, undefined, 1, ['A'], 'a', 'A ', 'query'].map(
    (operationName): Case => ({
      rule: `of several operations, ${JSON.stringify(operationName)}`,
      query: SEVERAL,
      operationName,
    }),
  ),
  { rule: 'a name for the only operation', query: ONLY, operationName: 'A' },
  { rule: 'no name for the only operation', query: ONLY },
  { rule: 'a wrong name for the only operation', query: ONLY, operationName: 'B' },
  { rule: 'a name where there is none', query: '{ product(pk: 1) { pk } }', operationName: 'A' },
];

/** Other content types have other statuses, and other credentials other results. */
const requests: Case[] = [
  ...[
    'application/json',
    'application/graphql-response+json',
    'application/json; charset=utf-8',
    'text/html, */*;q=0.1',
    'image/png',
  ].flatMap((accept): Case[] => [
    { rule: `a page for Accept ${accept}`, query: FIRST_PAGE, options: { headers: { accept } } },
    {
      rule: `an error for Accept ${accept}`,
      query: '{ products(first: 0) { totalCount } }',
      options: { headers: { accept } },
    },
  ]),
  {
    rule: 'a page by bad credentials',
    query: FIRST_PAGE,
    options: { headers: { 'x-session-id': 'none' } },
  },
  {
    rule: 'the cost and the statements of a page',
    query: FIRST_PAGE,
    extensions: { cost: true },
  },
  { rule: 'the library of the client', query: FIRST_PAGE, extensions: { clientLibrary: {} } },
];

const cases: Case[] = [
  ...pages,
  ...orders,
  ...cursors,
  ...selections,
  ...singles,
  ...directed,
  ...operations,
  ...requests,
];

describe('compiled queries return the same bytes as resolvers (GraphQL, 6)', () => {
  test.each(cases)(
    '$rule',
    async ({ query, variables, made, operationName, extensions, options }) => {
      const json = { query, variables: made?.(created) ?? variables, operationName, extensions };
      const send = async (at: Shop) =>
        comparable(await at.rest('POST', '/graphql', { json, ...options }));
      const expected = await send(plain);
      for (const time of TIMES) expect([time, await send(shop)]).toEqual([time, expected]);
    },
  );

  test('the same document with different variables', async () => {
    for (const first of [1, 2, 0, 3, 101, null, 1, 2]) {
      const send = async (at: Shop) => comparable(await at.graphql(LIST, { first }));
      expect(await send(shop)).toEqual(await send(plain));
    }
  });
});

describe('while the database is unavailable', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test('a compiled query reads once, like the resolvers', async () => {
    const query = '{ products(first: 2) @include(if: true) { nodes { name } } }';
    const reads: number[] = [];
    for (const own of [plain, shop]) {
      for (let time = 0; time < TIMES.length; time++)
        expect((await own.graphql(query)).status).toBe(200);
      const read = jest
        .spyOn(own.database.statements, 'read')
        .mockRejectedValue(Object.assign(new Error('gone'), { code: 'ECONNREFUSED' }));
      const { status, body } = await own.graphql(query);
      expect([status, body.errors]).toEqual([
        503,
        [expect.objectContaining({ extensions: { code: 'UNAVAILABLE', retryAfter: 1 } })],
      ]);
      reads.push(read.mock.calls.length);
    }
    expect(reads).toEqual([1, 1]);
  });
});
