import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { Shop, type Answer, type RequestOptions } from '../support/shop.ts';

// Both use the same rows. All data is created before the first request, so that neither caches an
// older count.
const shop = new Shop();
const plain = new Shop({}, { compiledOperations: false });

/** Resolvers, compiled operation, compiled operation that fills the cache, and the cache. */
const TIMES = [1, 2, 3, 4];
const ALL_FIELDS = '__typename id pk name barcode price createdAt updatedAt';
const PAGE_INFO = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor }';
const FIRST_PAGE = '{ products(first: 3) { totalCount nodes { pk name price } } }';
const LIST = `query ($first: Int, $after: String, $last: Int, $before: String, $filter: ProductFilter, $orderBy: ProductOrder) {
  products(first: $first, after: $after, last: $last, before: $before, filter: $filter, orderBy: $orderBy) {
    totalCount ${PAGE_INFO} edges { cursor node { pk } } nodes { pk name }
  }
}`;
const NO_TOKEN = 'eyJhbGciOiJIUzI1NiJ9.e30.AAAA';
const DAY = '2026-03-01T00:00:00.';

type Values = Record<string, unknown>;
type Caller =
  'anonymous' | 'ada' | 'disabled' | 'a bad token' | 'a session' | 'a bad session' | 'basic';

/** Values that are known once the data is created. */
interface Created {
  cursors: Record<string, string[]>;
  ids: Record<'product' | 'user' | 'item' | 'entry', string>;
}

interface Case {
  rule: string;
  query: string;
  variables?: unknown;
  made?: (created: Created) => Values;
  operationName?: unknown;
  caller?: Caller;
  /** A document that is cached before. */
  known?: string;
}

let created: Created;
let credentials: Record<Caller, RequestOptions>;
let ada: User;

beforeAll(async () => {
  await Promise.all([shop.start(), plain.start()]);
  await shop.empty();
  ada = await shop.makeUser({
    username: 'ada',
    fullName: 'Ada',
    scopes: ['products:write', 'blog:write', 'users:read'],
  });
  const max = await shop.makeUser({ username: 'max', disabled: true });
  const { key } = await sessions.open(shop.context(), ada, null);
  const names = ['Lamp', 'lamp "two"', 'Täble \\ / \u2028', 'Chair 🪑', '<b>Chair</b>', 'a', 'Zz'];
  for (const [index, name] of names.entries()) {
    const createdAt = new Date(`${DAY}${String(100 * (index % 3)).padStart(3, '0')}Z`);
    await shop.makeProduct({
      name,
      price: ['0.00', '0.10', '9999999999.99'][index % 3] ?? '1',
      createdAt,
    });
  }
  const item = await shop.makeItem(ada, 'lamp');
  const entry = await shop.makeEntry(ada, { title: 'Hello' });
  const orders = ['PK', 'NAME', 'PRICE', 'CREATED_AT', 'UPDATED_AT'];
  const cursors: Record<string, string[]> = {};
  for (const field of orders) {
    const { body } = await plain.graphql(LIST, { orderBy: { field } });
    cursors[field] = body.data.products.edges.map(({ cursor }: { cursor: string }) => cursor);
  }
  const { body } = await plain.graphql('{ product(pk: 1) { id } }');
  created = {
    cursors,
    ids: { product: body.data.product.id, user: ada.id, item: item.id, entry: entry.id },
  };
  credentials = {
    anonymous: {},
    ada: { token: shop.tokenOf(ada) },
    disabled: { token: shop.tokenOf(max) },
    'a bad token': { token: NO_TOKEN },
    'a session': { sessionKey: key },
    'a bad session': { sessionKey: 'none' },
    basic: { headers: { Authorization: 'Basic YTpi' } },
  };
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

/** The responses with fast paths, and for each the response without. */
async function bothWays(
  send: (at: Shop) => Promise<Answer>,
): Promise<[got: unknown[], expected: unknown[]]> {
  const ordinary = comparable(await send(plain));
  const got: unknown[] = [];
  for (const time of TIMES) got.push([time, ...comparable(await send(shop))]);
  return [got, TIMES.map((time) => [time, ...ordinary])];
}

function post(
  at: Shop,
  body: string | Uint8Array<ArrayBuffer>,
  { headers, ...rest }: RequestOptions = {},
): Promise<Answer> {
  return at.rest('POST', '/graphql', {
    ...rest,
    body,
    headers: { 'Content-Type': 'application/json', ...headers },
  });
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
const WITH_MUTATION = 'query A { me { username } } mutation B { logoutEverywhere { ended } }';
const ONLY = 'query A { product(pk: 1) { pk } }';
const operations: Case[] = [
  ...['A', 'B', 'C', 'D', '', null, undefined, 1, ['A'], 'a', 'A ', 'query'].map(
    (operationName): Case => ({
      rule: `of several operations, ${JSON.stringify(operationName)}`,
      query: SEVERAL,
      operationName,
    }),
  ),
  { rule: 'of a query and a mutation, the query', query: WITH_MUTATION, operationName: 'A' },
  { rule: 'of a query and a mutation, none', query: WITH_MUTATION },
  { rule: 'a name for the only operation', query: ONLY, operationName: 'A' },
  { rule: 'no name for the only operation', query: ONLY },
  { rule: 'a wrong name for the only operation', query: ONLY, operationName: 'B' },
  { rule: 'a name where there is none', query: '{ product(pk: 1) { pk } }', operationName: 'A' },
  // Documents that a prepended name and a space turn into cached documents.
  {
    rule: 'a name that turns an invalid document into a cached one',
    query: 'A { product(pk: 1) { pk } }',
    operationName: 'query',
    known: ONLY,
  },
  {
    rule: 'a name that turns a document into a cached one',
    query: 'query { product(pk: 1) { pk } }',
    operationName: 'query',
    known: 'query query { product(pk: 1) { pk } }',
  },
  {
    rule: 'an empty name that turns a document into a cached one',
    query: '{ product(pk: 1) { pk } }',
    operationName: '',
    known: ' { product(pk: 1) { pk } }',
  },
];

const NODE = `query ($id: ID!) { node(id: $id) { __typename id ... on Product { name } ... on User { username email } ... on Item { itemId } } }`;
const ME =
  '{ me { __typename id username email fullName disabled scopes items { totalCount nodes { id itemId } } } }';
const callers: Caller[] = [
  'anonymous',
  'ada',
  'disabled',
  'a bad token',
  'a session',
  'a bad session',
  'basic',
];
const persons: Case[] = [
  ...callers.flatMap((caller): Case[] => [
    { rule: `me for ${caller}`, query: ME, caller },
    { rule: `the first page for ${caller}`, query: FIRST_PAGE, caller },
    {
      rule: `users for ${caller}`,
      query: `{ users(first: 1) { totalCount ${PAGE_INFO} nodes { username email scopes } } }`,
      caller,
    },
    {
      rule: `blog for ${caller}`,
      query: `{ blog { totalCount edges { cursor node { id title creator { email } } } } }`,
      caller,
    },
  ]),
  ...(['product', 'user', 'item', 'entry'] as const).flatMap((type): Case[] => [
    {
      rule: `node(id:) of a ${type} for an anonymous caller`,
      query: NODE,
      made: ({ ids }) => ({ id: ids[type] }),
    },
    {
      rule: `node(id:) of a ${type} for its owner`,
      query: NODE,
      made: ({ ids }) => ({ id: ids[type] }),
      caller: 'ada',
    },
  ]),
  { rule: 'node(id:) of a malformed id', query: NODE, variables: { id: 'x' } },
  {
    rule: 'nodes(ids:)',
    query: 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }',
    made: ({ ids }) => ({ ids: [ids.product, 'x', ids.product] }),
  },
];

const cases: Case[] = [
  ...pages,
  ...orders,
  ...cursors,
  ...selections,
  ...singles,
  ...directed,
  ...operations,
  ...persons,
];

describe('GraphQL responses are the same, byte for byte, with and without fast paths', () => {
  test.each(cases)(
    '$rule',
    async ({ query, variables, made, operationName, known, caller = 'anonymous' }) => {
      const body = JSON.stringify({
        query,
        variables: made?.(created) ?? variables,
        operationName,
      });
      if (known !== undefined) await shop.graphql(known);
      const [got, expected] = await bothWays((at) => post(at, body, credentials[caller]));
      expect(got).toEqual(expected);
    },
  );

  test('the same document for callers with different credentials', async () => {
    const send = async (at: Shop) => {
      const answers: unknown[] = [];
      for (const caller of [...callers, ...callers.toReversed()]) {
        for (const query of [ME, FIRST_PAGE])
          answers.push([
            caller,
            ...comparable(await post(at, JSON.stringify({ query }), credentials[caller])),
          ]);
      }
      return answers;
    };
    expect(await send(shop)).toEqual(await send(plain));
  });

  test('the same document with different variables', async () => {
    const send = async (at: Shop) => {
      const answers: unknown[] = [];
      for (const first of [1, 2, 0, 3, 101, null, 1, 2])
        answers.push(comparable(await at.graphql(LIST, { first })));
      return answers;
    };
    expect(await send(shop)).toEqual(await send(plain));
  });

  test('six hundred documents, more than are cached', async () => {
    const documents = [...Array(600).keys()].map(
      (at) => `{ a${at}: product(pk: ${at}) { pk name } }`,
    );
    const send = async (at: Shop) => {
      const answers: string[] = [];
      for (const query of [...documents, ...documents.slice(-100)])
        answers.push((await at.graphql(query)).text);
      return answers;
    };
    expect(await send(shop)).toEqual(await send(plain));
  });
});

describe('a mutation runs exactly once per request, whatever was requested before', () => {
  const CREATE = 'mutation ($input: ProductInput!) { createProduct(input: $input) { name price } }';
  const count = async (table: string): Promise<number> =>
    Number((await shop.sql(`select count(*) from ${table}`))[0]?.['count']);

  test.each([
    ['alone', CREATE, undefined],
    [
      'in a document with a query, by its name',
      `query A { product(pk: 1) { pk } } ${CREATE.replace('mutation', 'mutation B')}`,
      'B',
    ],
    ['named like a query', CREATE.replace('mutation', 'mutation query'), 'query'],
  ])('createProduct %s', async (_how, query, operationName) => {
    const before = await count('product');
    const send = (at: Shop) => {
      const input = { name: 'New', barcode: shop.newBarcode(), price: 1 };
      return post(
        at,
        JSON.stringify({ query, variables: { input }, operationName }),
        credentials.ada,
      );
    };
    const [got, expected] = await bothWays(send);
    expect(got).toEqual(expected);
    expect(await count('product')).toBe(before + 1 + TIMES.length);
  });

  test('createBlogEntry with the same body each time', async () => {
    const before = await count('blog_entry');
    const query =
      'mutation { createBlogEntry(input: {title: "T", body: "B"}) { title published creator { username } } }';
    const [got, expected] = await bothWays((at) => at.graphql(query, {}, credentials.ada));
    expect(got).toEqual(expected);
    expect(await count('blog_entry')).toBe(before + 1 + TIMES.length);
  });

  test('several in one document, one after another', async () => {
    const owner = await shop.makeUser();
    const query =
      'mutation ($a: String!, $b: String!) { a: addItem(itemId: $a) { owner { items { totalCount } } } b: addItem(itemId: $b) { itemId } }';
    const totals: unknown[] = [];
    for (const at of [shop, plain, shop, shop, plain, shop]) {
      const { body } = await at.graphql(
        query,
        { a: `a${totals.length}`, b: `b${totals.length}` },
        { as: owner },
      );
      totals.push(body.data.a.owner.items.totalCount);
    }
    expect(totals).toEqual([1, 3, 5, 7, 9, 11]);
  });

  test('a failing mutation does not run the one before it again', async () => {
    const query =
      'mutation ($a: String!) { a: addItem(itemId: $a) { itemId } b: removeItem(itemId: "none") { itemId } }';
    let made = 0;
    const [got, expected] = await bothWays((at) =>
      at.graphql(query, { a: `done ${++made}` }, credentials.ada),
    );
    expect(got).toEqual(expected);
    expect(await shop.sql(`select item_id from item where item_id like 'done %'`)).toHaveLength(
      made,
    );
  });
});

describe('the first page is the same for all headers and bodies', () => {
  const firstPage = JSON.stringify({ query: FIRST_PAGE });

  test.each(
    [
      '*/*',
      'application/json',
      'application/graphql-response+json',
      'application/graphql-response+json; charset=utf-8, application/json; charset=utf-8',
      'application/graphql-response+json;q=0.9, application/json',
      'application/json;q=0.5',
      'application/json; charset=utf-8',
      'application/*',
      'APPLICATION/JSON',
      'text/html',
      'text/html, */*;q=0.1',
      'multipart/mixed',
      'multipart/mixed; deferSpec=20220824, application/json',
      'image/png',
      'none at all',
    ].flatMap((accept) => [
      [accept, 'a page', FIRST_PAGE],
      [accept, 'an error', '{ users { totalCount } }'],
      [accept, 'an invalid document', '{ nothing }'],
    ]),
  )('Accept %s: %s', async (accept, _what, query) => {
    const [got, expected] = await bothWays((at) =>
      post(at, JSON.stringify({ query }), { headers: { Accept: accept } }),
    );
    expect(got).toEqual(expected);
  });

  test.each([
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/json; charset=',
    'application/json; x=y',
    'application/json;',
    'APPLICATION/JSON',
    'application/json, text/plain',
    'application/graphql',
    'application/graphql+json',
    'application/x-www-form-urlencoded',
    'text/plain',
    'multipart/form-data; boundary=x',
    'nonsense',
    '',
  ])('Content-Type %j', async (type) => {
    const [got, expected] = await bothWays((at) =>
      post(at, firstPage, { headers: { 'Content-Type': type } }),
    );
    expect(got).toEqual(expected);
  });

  const bytes = new TextEncoder().encode(firstPage);
  test.each<[string, string, Uint8Array]>([
    ['gzip', 'gzip', gzipSync(bytes)],
    ['GZIP', 'in capitals', gzipSync(bytes)],
    ['deflate', 'deflated', deflateSync(bytes)],
    ['br', 'by Brotli', brotliCompressSync(bytes)],
    ['identity', 'as it is', bytes],
    ['gzip', 'not zipped', bytes],
    ['gzip', 'cut short', gzipSync(bytes).subarray(0, 20)],
    [
      'gzip',
      'zipped, of 200 KB',
      gzipSync(JSON.stringify({ query: FIRST_PAGE, variables: { x: 'x'.repeat(200_000) } })),
    ],
    [
      'identity',
      'of 200 KB',
      new TextEncoder().encode(
        JSON.stringify({ query: FIRST_PAGE, variables: { x: 'x'.repeat(200_000) } }),
      ),
    ],
    ['nothing', 'as it is', bytes],
    ['gzip, gzip', 'zipped twice', gzipSync(gzipSync(bytes))],
  ])('Content-Encoding %s, %s', async (encoding, _how, body) => {
    const [got, expected] = await bothWays((at) =>
      post(at, new Uint8Array(body), { headers: { 'Content-Encoding': encoding } }),
    );
    expect(got).toEqual(expected);
  });

  test.each([
    ['an extensions member', { query: FIRST_PAGE, extensions: {} }],
    ['extensions of null', { query: FIRST_PAGE, extensions: null }],
    ['extensions as a list', { query: FIRST_PAGE, extensions: [] }],
    [
      'the library of the client',
      { query: FIRST_PAGE, extensions: { clientLibrary: { name: 'x' } } },
    ],
    [
      'the library of the client, and a requested cost',
      { query: FIRST_PAGE, extensions: { clientLibrary: {}, cost: true } },
    ],
    [
      'a persisted query beside the query',
      {
        query: FIRST_PAGE,
        extensions: { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } },
      },
    ],
    [
      'a persisted query',
      { extensions: { persistedQuery: { version: 1, sha256Hash: '0'.repeat(64) } } },
    ],
    ['an unknown member', { query: FIRST_PAGE, id: 1 }],
    [
      'a member named __proto__',
      JSON.parse(`{"query":${JSON.stringify(FIRST_PAGE)},"__proto__":{}}`),
    ],
    ['variables of null', { query: FIRST_PAGE, variables: null }],
    ['variables as text', { query: FIRST_PAGE, variables: '{}' }],
    ['variables as a list', { query: FIRST_PAGE, variables: [] }],
    ['variables as a number', { query: FIRST_PAGE, variables: 1 }],
    ['variables of false', { query: FIRST_PAGE, variables: false }],
    ['an operationName of null', { query: FIRST_PAGE, operationName: null }],
    ['an operationName that is empty', { query: FIRST_PAGE, operationName: '' }],
    ['an operationName that is a number', { query: FIRST_PAGE, operationName: 0 }],
    ['an operationName of false', { query: FIRST_PAGE, operationName: false }],
    ['a query of null', { query: null }],
    ['a query that is a number', { query: 1 }],
    ['a query that is a list', { query: [FIRST_PAGE] }],
    ['a query of undefined', {}],
    ['a batch', [{ query: FIRST_PAGE }, { query: FIRST_PAGE }]],
    ['a batch of one', [{ query: FIRST_PAGE }]],
    ['an empty batch', []],
    ['a batch of invalid requests', [1, null]],
    ['text', FIRST_PAGE],
    ['a number', 1],
    ['null', null],
    ['true', true],
  ])('a body with %s', async (_what, value) => {
    const body = JSON.stringify(value);
    const [got, expected] = await bothWays((at) => post(at, body));
    expect(got).toEqual(expected);
  });

  test.each([
    ['that is empty', ''],
    ['that is not JSON', '{'],
    ['with text behind it', `${firstPage}x`],
    ['twice', firstPage + firstPage],
    ['with blanks around it', ` \r\n\t${firstPage}\n `],
    ['after a byte order mark', `\ufeff${firstPage}`],
    ['with a query given twice', `{"query":"{ me { username } }",${firstPage.slice(1)}`],
    ['with half a surrogate pair', firstPage.replace('pk', String.raw`pk # \ud800`)],
    ['with a NUL', firstPage.replace('pk', String.raw`pk \u0000`)],
    [
      'with a number past double precision',
      firstPage.replace('}"}', '}","variables":{"x":12345678901234567890}}'),
    ],
  ])('a body %s', async (_how, body) => {
    const [got, expected] = await bothWays((at) => post(at, body));
    expect(got).toEqual(expected);
  });

  test('a body that names a cached REST page', async () => {
    const target = '/api/v2/shop/products?limit=2';
    for (let time = 0; time < TIMES.length; time++) await shop.rest('GET', target);
    const [got, expected] = await bothWays((at) => post(at, `GET ${target}`));
    expect(got).toEqual(expected);
  });

  test('a body that is not UTF-8', async () => {
    const [got, expected] = await bothWays((at) =>
      post(
        at,
        new Uint8Array(
          Buffer.from(firstPage.replace('{ products', '# \xff\n{ products'), 'latin1'),
        ),
      ),
    );
    expect(got).toEqual(expected);
  });

  test.each<[string, Record<string, string>]>([
    ['Authorization without a scheme', { Authorization: NO_TOKEN }],
    ['Authorization that is empty', { Authorization: '' }],
    ['Bearer without a token', { Authorization: 'Bearer ' }],
    ['X-SESSION-ID that is empty', { 'X-SESSION-ID': '' }],
    ['X-SESSIONID that is bad', { 'X-SESSIONID': 'none' }],
    ['two session headers that differ', { 'X-SESSION-ID': 'a', 'X-SESSIONID': 'b' }],
    ['a Cookie', { Cookie: 'session=1' }],
    ['an Origin', { Origin: 'https://elsewhere.example' }],
    ['If-None-Match', { 'If-None-Match': '*' }],
    ['a Range', { Range: 'bytes=0-3' }],
    ['X-HTTP-Method-Override', { 'X-HTTP-Method-Override': 'DELETE' }],
  ])('with %s', async (_what, headers) => {
    const [got, expected] = await bothWays((at) => post(at, firstPage, { headers }));
    expect(got).toEqual(expected);
  });

  test.each(
    ['GET', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'].flatMap((method) => [
      [method, FIRST_PAGE],
      [method, 'mutation { logoutEverywhere { ended } }'],
    ]),
  )('by %s: %s', async (method, query) => {
    const search = new URLSearchParams({ query });
    const headers = { 'apollo-require-preflight': '1', Accept: 'application/json' };
    const [got, expected] = await bothWays((at) =>
      at.rest(method, `/graphql?${search.toString()}`, { headers }),
    );
    expect(got).toEqual(expected);
  });

  test('by POST with another query in its URL', async () => {
    const [got, expected] = await bothWays((at) =>
      at.rest('POST', `/graphql?query=${encodeURIComponent('{ me { username } }')}`, {
        json: { query: FIRST_PAGE },
      }),
    );
    expect(got).toEqual(expected);
  });
});

describe('REST responses are the same, byte for byte, with and without fast paths', () => {
  const PAGED = '/api/v2/shop/products';
  const ONE_PATH = '/api/v1/shop/product/';
  const queries = [
    '',
    '?',
    '?page=1',
    '?page=2',
    '?page=0',
    '?page=-1',
    '?page=x',
    '?page=',
    '?page=1.0',
    '?page=%31',
    '?page=+1',
    '?page=01',
    `?page=${'9'.repeat(30)}`,
    '?page=1&page=2',
    '?page=1&limit=1',
    '?page=1&x=1',
    '?page=1#f',
    '?page=1&',
    '?&page=1',
    '?PAGE=2',
    '?limit=3',
    '?limit=0',
    '?limit=5000',
    '?limit=x',
    '?offset=2',
    '?offset=7',
    '?offset=-1',
    '?limit=3&offset=3',
    '?offset=3&limit=3',
    `?offset=${'9'.repeat(30)}`,
    '?__proto__=1',
    '?page[]=1',
    '?%',
    '?page=%ff',
    '?a?b',
    '?limit=2&offset=999999',
  ];
  const targets = [
    '/api/v1/shop/products',
    '/api/users',
    '/blog',
    '/users/me/',
    '/users/me/items/',
    '/livez',
    '/readyz',
    '/graphql',
    '/api/v2/auth/login',
    ...queries.map((query) => PAGED + query),
    ...[
      '1',
      '7',
      '8',
      '0',
      '-1',
      'x',
      '01',
      '1.0',
      '1e0',
      '2147483648',
      '9007199254740992',
      '9'.repeat(40),
      '1?x=1',
      '1?',
      '1-',
      '_',
      '__proto__',
      '',
    ].map((pk) => ONE_PATH + pk),
  ];

  test.each(
    ['GET', 'HEAD', 'OPTIONS'].flatMap((method) => targets.map((target) => [method, target])),
  )('%s %s', async (method, target) => {
    const [got, expected] = await bothWays((at) => at.rest(method, target));
    expect(got).toEqual(expected);
  });

  test.each(
    ['PUT', 'DELETE', 'PATCH', 'POST'].flatMap((method) =>
      [PAGED, `${ONE_PATH}1`, '/livez', '/nothing'].map((target) => [method, target]),
    ),
  )('%s %s', async (method, target) => {
    const [got, expected] = await bothWays((at) => at.rest(method, target));
    expect(got).toEqual(expected);
  });

  test.each(
    callers.flatMap((caller) =>
      [PAGED, `${ONE_PATH}1`, '/api/users', '/users/me/', '/blog'].map(
        (target) => [caller, target] as const,
      ),
    ),
  )('for %s: %s', async (caller, target) => {
    const [got, expected] = await bothWays((at) => at.rest('GET', target, credentials[caller]));
    expect(got).toEqual(expected);
  });

  test.each(
    ['application/problem+json', 'text/html', 'application/json', 'image/png'].flatMap((accept) =>
      [PAGED, `${PAGED}?page=0`, `${ONE_PATH}1`, `${ONE_PATH}99`, '/nothing'].map((target) => [
        accept,
        target,
      ]),
    ),
  )('Accept %s: %s', async (accept, target) => {
    const [got, expected] = await bothWays((at) =>
      at.rest('GET', target, { headers: { Accept: accept } }),
    );
    expect(got).toEqual(expected);
  });

  const forms = [
    `${PAGED}/`,
    `${PAGED}//`,
    `/${PAGED}`,
    '/api//v2/shop/products',
    '/api/v2/shop//products',
    `${PAGED}/?page=1`,
    `${PAGED}/x`,
    `${PAGED}.`,
    '/api/v2/shop/product%73',
    '/api/v2/%73hop/products',
    '/api%2Fv2/shop/products',
    '/%61pi/v2/shop/products?page=1',
    `${PAGED}%3Fpage=1`,
    '/API/v2/shop/products',
    '/api/V2/shop/Products',
    '/./api/v2/shop/products',
    '/x/../api/v2/shop/products',
    '/api/v2\\shop\\products',
    `${ONE_PATH}1/`,
    `${ONE_PATH}1//`,
    `/${ONE_PATH}1`,
    `${ONE_PATH}/1`,
    `${ONE_PATH}%31`,
    `${ONE_PATH}%31/`,
    `${ONE_PATH}1%2F`,
    `${ONE_PATH}1%20`,
    `${ONE_PATH}%`,
    `${ONE_PATH}%E0%A4%A`,
    `${ONE_PATH}%00`,
    `${ONE_PATH}1;x=1`,
    `${ONE_PATH}1,2`,
    `${ONE_PATH}1/2`,
    `${ONE_PATH}1#f`,
    `${ONE_PATH}{pk}`,
    `${ONE_PATH}:pk`,
    `${ONE_PATH}..`,
    `${ONE_PATH}1?/2`,
    '/api/v1/shop/product',
    '/api/v1/shop/produc%74/1',
    '/api/v1/shop/%70roduct/1',
    '/',
    '//',
    '/?',
    '/nothing',
    '/__proto__',
    '/constructor',
    '/toString/',
    '/livez/',
    '//livez',
    '/%6Civez',
    '/livez?x',
    '/LIVEZ',
    '/livez#x',
    '/graphql/',
    '//graphql',
    '/graph%71l',
    '/users/me',
    '/users/me/',
    '/users/me//',
    '/users/me/items',
    '/users/%6De/',
    '/api/users/',
    '/blog/',
    'http://shop.example/livez',
    'http://shop.example/api/v2/shop/products?page=1',
    `http://elsewhere.example${ONE_PATH}1`,
    'http://shop.example',
    'http://shop.example//livez',
    'HTTP://shop.example/livez/',
    'https://shop.example/livez',
    'ftp://shop.example/livez',
    'shop.example/livez',
    '*',
    'livez',
    '?page=1',
    '#',
    `${PAGED}?\xa0`,
    `${PAGED}\xa0`,
    `\xe4`,
    `${PAGED}?page=1|2`,
    `${PAGED}?"`,
    `${PAGED}^`,
  ];
  const raw = async (at: Shop, method: string, target: string, headers = ''): Promise<string[]> => {
    const answer = await at.raw(
      `${method} ${target} HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n${headers}\r\n`,
    );
    // A page has another nonce each time.
    const same = answer.replace(/nonce(-|=")[^"']+/g, 'nonce$1');
    return same.split('\r\n').filter((line) => !/^(date|x-request-id):/i.test(line));
  };

  test.each(['GET', 'HEAD', 'OPTIONS', 'PUT', 'TRACE', 'PROPFIND'])(
    '%s of every form of request target',
    async (method) => {
      const got: unknown[] = [];
      const expected: unknown[] = [];
      for (const target of forms) {
        expected.push([target, await raw(plain, method, target)]);
        got.push([target, await raw(shop, method, target)]);
      }
      expect(got).toEqual(expected);
    },
  );

  test.each([
    ['a second Host', 'Host: elsewhere.example\r\n'],
    [
      'a second Authorization',
      `Authorization: Basic YTpi\r\nAuthorization: Bearer ${NO_TOKEN}\r\n`,
    ],
    ['an Authorization and a session', `Authorization: Basic YTpi\r\nX-SESSION-ID: none\r\n`],
    ['an unread body', 'Content-Length: 2\r\n\r\n{}'],
    [
      'a preflight',
      'Origin: https://a.example\r\nAccess-Control-Request-Headers: authorization, x-other\r\n',
    ],
  ])('%s', async (_what, headers) => {
    for (const method of ['GET', 'OPTIONS', 'HEAD']) {
      for (const target of [PAGED, `${ONE_PATH}1`, '/graphql', '/livez', '/users/me/']) {
        const expected = [method, target, await raw(plain, method, target, headers)];
        for (const time of TIMES)
          expect([time, method, target, await raw(shop, method, target, headers)]).toEqual([
            time,
            ...expected,
          ]);
      }
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
