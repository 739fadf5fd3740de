import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '../support/jest.ts';
import { Shop, type Answer } from '../support/shop.ts';

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

interface Case {
  query: string;
  variables?: unknown;
  /** Variables that are known once the data is created: by the cursors of an order. */
  made?: (cursors: Record<string, string[]>) => Values;
  operationName?: unknown;
  extensions?: Values;
  headers?: Record<string, string>;
}

const ORDERS = ['PK', 'NAME', 'PRICE', 'CREATED_AT', 'UPDATED_AT'];
const cursors: Record<string, string[]> = {};

beforeAll(async () => {
  await Promise.all([shop.start(), plain.start()]);
  await shop.empty();
  const names = ['Lamp', 'lamp "two"', 'Täble \\ / \u2028', 'Chair 🪑', '<b>Chair</b>', 'a', 'Zz'];
  for (const [index, name] of names.entries()) {
    const createdAt = new Date(`${DAY}${String(100 * (index % 3)).padStart(3, '0')}Z`);
    const price = ['0.00', '0.10', '9999999999.99'][index % 3] ?? '1';
    await shop.makeProduct({ name, price, createdAt });
  }
  for (const field of ORDERS) {
    const { body } = await plain.graphql(LIST, { orderBy: { field } });
    cursors[field] = body.data.products.edges.map(({ cursor }: { cursor: string }) => cursor);
  }
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
  {},
  { first: 3 },
  { first: 7 },
  { first: 100 },
  { last: 3 },
  { last: 100 },
  { first: 0 },
  { first: 101 },
  { last: 0 },
  { first: 1, last: 1 },
  { first: null, after: null, last: null, before: null, filter: null, orderBy: null },
  { first: '3' },
  { first: 1.5 },
  { first: 4294967296 },
  { after: 'WyJ4Il0' },
  { after: '%%%' },
  { before: '' },
  { after: 5 },
  { first: 2, nobody: 1 },
  JSON.parse('{"first":2,"__proto__":{"first":1}}') as Values,
  { orderBy: {} },
  { orderBy: { field: 'WEIGHT' } },
  { orderBy: { field: 'PK', x: 1 } },
  { filter: {} },
  { filter: { search: 'lamp' } },
  { filter: { search: null, priceMin: null } },
  { filter: { search: 'a\0' } },
  { filter: { search: 'nothing' } },
].map((variables) => ({ query: LIST, variables }));

const orders: Case[] = ORDERS.flatMap((field) =>
  ['ASC', 'DESC'].flatMap((direction): Case[] => {
    const orderBy = { field, direction };
    return [
      { query: LIST, variables: { first: 4, orderBy } },
      { query: LIST, variables: { last: 2, orderBy } },
      // Cursors of a descending list differ, so half of these are rejected.
      {
        query: LIST,
        made: ({ [field]: at }) => ({ after: at?.[1], before: at?.[5], first: 2, orderBy }),
      },
    ];
  }),
);

const between: Case[] = (
  [
    ({ PK }) => ({ after: PK?.[0], first: 2 }),
    ({ PK }) => ({ after: PK?.at(-1) }),
    ({ PK }) => ({ before: PK?.[0] }),
    ({ PK }) => ({ before: PK?.[4], last: 2 }),
    ({ PK }) => ({ before: PK?.[4], first: 2 }),
    ({ PK }) => ({ after: PK?.[1], last: 2 }),
    ({ PK }) => ({ after: PK?.[5], before: PK?.[1] }),
    ({ NAME }) => ({ after: NAME?.[0] }),
    ({ PK }) => ({ after: PK?.[0], filter: { search: 'a' } }),
    ({ PK }) => ({ after: `${PK?.[0]}A` }),
  ] satisfies Case['made'][]
).map((made) => ({ query: LIST, made }));

/** Documents without variables, one a line. */
const documents: Case[] = `
{ products { totalCount } }
{ products(last: 2) { ${PAGE_INFO} } }
{ products(first: 2) { edges { cursor } } }
{ products(first: 2, orderBy: {field: CREATED_AT}) { edges { cursor } nodes { barcode } } }
{ __typename products(first: 2) { __typename pageInfo { __typename } edges { __typename node { __typename } } } }
{ products { nodes { ${ALL_FIELDS} } edges { node { ${ALL_FIELDS} } } } }
{ products(first: 2) { nodes { updatedAt price pk name id createdAt barcode } edges { cursor } totalCount } }
{ p: products(first: 2) { t: totalCount i: pageInfo { n: hasNextPage } e: edges { c: cursor n: node { k: pk l: pk } } } }
{ products(first: 2) { nodes: edges { node: cursor } edges: nodes { name: pk pk: name } } }
{ products(first: 2) { __proto__: totalCount nodes { constructor: pk __proto__: name } } }
{ products(first: 2) { nodes { pk } nodes { name pk } edges { node { pk } } edges { cursor node { name } } } }
{ products(first: 2) { nodes { pk } } me { username } products(first: 2) { totalCount nodes { name } } }
{ product(pk: 1) { pk } products(first: 1) { nodes { pk } } product(pk: 1) { name pk } }
{ products(first: 2) { nodes { pk } } products(first: 3) { totalCount } }
query { products(first: 2) { ...A nodes { pk } } } fragment A on ProductConnection { edges { ...B } nodes { ...C } } fragment B on ProductEdge { cursor node { ...C pk } } fragment C on Product { name ...D } fragment D on Node { id }
query { ...Q } fragment Q on Query { products(first: 1) { totalCount } product(pk: 1) { pk } }
{ product(pk: 1) { ... on Node { id __typename ... on Product { name } } } }
{ ... { product(pk: 1) { ... { pk ... { name } } } } }
{ products(first: 1) { ... on ProductConnection { nodes { ... on Product { pk } } } } }
{ product(pk: 1) { ... on User { username } } }
{ product(pk: 1) { pk } } fragment F on Product { pk }
{ product(pk: 1) { ...F } } fragment F on Product { ...F }
{ products(first: 1) { totalCount @include(if: true) nodes { pk } } }
{ product(pk: 1) { pk @skip(if: true) } }
{ product(pk: 1) @skip(if: true) { pk } me { username } }
{ product(pk: 1) { pk ... @include(if: false) { name } ...F @skip(if: false) } } fragment F on Product { price }
{ a: product(pk: 1) { pk } b: product(pk: 2) { name } c: product(pk: 99) { pk } products(first: 1) { totalCount } }
{ product(pk: 1) { pk } me { username } }
{ a: product(pk: 1) { pk } users { totalCount } b: product(pk: 2) { pk } }
{ nodes(ids: ["x"]) { id } product(pk: 1) { pk } }
{ a: products(first: 0) { totalCount } b: products(first: 1) { totalCount } c: products(last: 0) { totalCount } }
{ products { weight } }
{ products(size: 1) { totalCount } }
{ product(pk: 1) { name(x: 1) } }
{ products }
{ products { } }
{ products(
{ ,,products(first: 1) { totalCount, } } # end
subscription { products { totalCount } }
type X { a: Int } { product(pk: 1) { pk } }
{ __type(name: "Product") { name fields { name } } }
{ __typename __schema { queryType { name } } products(first: 1) { totalCount } }
query @include(if: true) { product(pk: 1) { pk } }
{ product(pk: 1) @cached { pk } }
{ product(pk: 1) { pk } a: product(pk: "2") { pk } b: product(pk: 99999999999999999999) { pk } }
{ product { pk } }
{ product(pk: null) { pk } }
{ products(first: $n) { totalCount } }
query ($n: Int!) { products(first: $n) { totalCount } }
{ productByBarcode(barcode: "0012345678905") { pk } }
{ productByBarcode(barcode: "1") { pk } }
{ products(first: 1) { totalCount } } #${'x'.repeat(11_000)}
{ ${[...Array(50).keys()].map((at) => `a${at}: product(pk: ${at}) { pk name }`).join(' ')} }
`
  .trim()
  .split('\n')
  .concat('', '  ')
  .map((query) => ({ query }));

const ONE = `query ($pk: ID!) { product(pk: $pk) { ${ALL_FIELDS} } }`;
const PK_BY_DEFAULT = 'query ($pk: ID = 2) { product(pk: $pk) { pk } }';
const FIRST_BY_DEFAULT = 'query ($n: Int = 2) { products(first: $n) { nodes { pk } } }';
const ORDER_BY_DEFAULT = 'query ($d: OrderDirection = ASC)';
const DIRECTED = `query ($a: Boolean!, $b: Boolean = true) {
  products(first: 1) @include(if: $a) { totalCount @skip(if: $b) nodes { pk ... on Product @include(if: $b) { name } } }
  product(pk: 1) @skip(if: $a) { pk }
}`;
const BY_FIELD =
  'query ($a: Boolean!) { products(first: 1) { totalCount @include(if: $a) nodes { pk name @skip(if: $a) } } }';
const PKS = [
  '1',
  '8',
  '0',
  '-1',
  'x',
  '',
  ' 1',
  '01',
  '1.0',
  '1e0',
  '9007199254740992',
  '\0',
  '１',
];
const withVariables: Case[] = (
  [
    ...[...PKS, 1, 1.5, 1e21, true, null, [1]].map((pk): [string, Values] => [ONE, { pk }]),
    [ONE, { PK: 1 }],
    [PK_BY_DEFAULT, {}],
    [PK_BY_DEFAULT, { pk: null }],
    [FIRST_BY_DEFAULT, {}],
    [FIRST_BY_DEFAULT, { n: 1 }],
    [FIRST_BY_DEFAULT, { n: null }],
    [
      'query ($f: ProductOrderField!) { products(orderBy: {field: $f}) { nodes { pk } } }',
      { f: 'NAME' },
    ],
    [
      `${ORDER_BY_DEFAULT} { products(first: 1, orderBy: {field: PK, direction: $d}) { totalCount } }`,
      { d: null },
    ],
    [
      `${ORDER_BY_DEFAULT} { a: products(after: "x") { totalCount } b: products(orderBy: {field: PK, direction: $d}) { totalCount } }`,
      { d: null },
    ],
    ['query ($n: Int) { products { totalCount } }', { n: 1 }],
    ['query ($n: String) { products(first: $n) { totalCount } }', { n: '1' }],
    ...[true, false].map((a): [string, Values] => [BY_FIELD, { a }]),
    ...[
      { a: true },
      { a: false },
      { a: true, b: false },
      { a: null },
      { b: true },
      { a: 'true' },
    ].map((variables): [string, Values] => [DIRECTED, variables]),
  ] satisfies [string, Values][]
).map(([query, variables]) => ({ query, variables }));

const SEVERAL =
  'query A { product(pk: 1) { pk } } query B { products(first: 1) { totalCount } } query C { me { username } }';
const ONLY = 'query A { product(pk: 1) { pk } }';
const operations: Case[] = [
  ...['A', 'B', 'C', 'D', '', null, undefined, 1, ['A'], 'a'].map((operationName) => ({
    query: SEVERAL,
    operationName,
  })),
  ...['A', undefined, 'B'].map((operationName) => ({ query: ONLY, operationName })),
  { query: '{ product(pk: 1) { pk } }', operationName: 'A' },
];

/** Other content types have other statuses, and other credentials other results. */
const requests: Case[] = [
  ...['application/json', 'application/graphql-response+json', 'text/html, */*;q=0.1'].flatMap(
    (accept) =>
      [FIRST_PAGE, '{ products(first: 0) { totalCount } }'].map((query) => ({
        query,
        headers: { accept },
      })),
  ),
  { query: FIRST_PAGE, headers: { 'x-session-id': 'none' } },
  { query: FIRST_PAGE, extensions: { cost: true } },
  { query: FIRST_PAGE, extensions: { clientLibrary: {} } },
];

describe('compiled queries return the same bytes as resolvers (GraphQL, 6)', () => {
  test.each(
    [pages, orders, between, documents, withVariables, operations, requests]
      .flat()
      .map((each, index) => ({ ...each, index })),
  )(
    '$index: $query, $variables, $operationName, $headers',
    async ({ query, variables, made, operationName, extensions, headers = {} }) => {
      const json = { query, variables: made?.(cursors) ?? variables, operationName, extensions };
      const send = async (at: Shop) =>
        comparable(await at.rest('POST', '/graphql', { json, headers }));
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
