import { describe, expect, test } from '../support/jest.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop } from '../support/shop.ts';

// The cost of an operation is the number of objects that it can return. It is computed before
// execution, however the page size is given.

const shop = useShop();

const TOO_COMPLEX = 'QUERY_TOO_COMPLEX';
const BAD_INPUT = 'BAD_USER_INPUT';
const INVALID = 'GRAPHQL_VALIDATION_FAILED';
const PREFLIGHTED = { 'apollo-require-preflight': 'true' };

interface GraphqlRequest {
  query: string;
  variables?: unknown;
  operationName?: string;
  extensions?: object;
}

/** Ten entries, each with a page of its creator: cost 992 for pages of 96, 1,002 for 97. */
const nested = (args: string, head = '') =>
  `query ${head} { node(id: "x") { ... on User { blog(first: 10) { nodes { creator { blog(${args}) { nodes { title } } } } } } } }`;
const ids = (count: number) => JSON.stringify(Array.from({ length: count }, () => 'x'));
/** Cost 20 for each id. */
const listed = (of: string, head = '') =>
  `query ${head} { nodes(ids: ${of}) { ... on User { blog(first: 18) { nodes { title } } } } }`;

describe('the limit', () => {
  test.each<[string, (size: number) => GraphqlRequest]>([
    ['first', (size) => ({ query: nested(`first: ${size}`) })],
    ['last', (size) => ({ query: nested(`last: ${size}`) })],

    ['a variable', (size) => ({ query: nested('first: $n', '($n: Int)'), variables: { n: size } })],

    ['a default', (size) => ({ query: nested('first: $n', `($n: Int = ${size})`) })],

    [
      'a field included by a variable',
      (size) => ({
        query: nested(`first: ${size}`)
          .replace('blog(first: 10)', 'blog(first: 10) @include(if: $y) @skip(if: $n)')
          .replace('query ', 'query ($y: Boolean!, $n: Boolean = false)'),
        variables: { y: true },
      }),
    ],
    [
      'a fragment',
      (size) => ({
        query: `{ node(id: "x") { ...A } } fragment A on User { blog(first: 10) { ...B } }
        fragment B on BlogEntryConnection { nodes { creator { ...C } } } fragment C on User { blog(first: ${size}) { nodes { title } } }`,
      }),
    ],

    [
      'the named operation',
      (size) => ({
        query: `query A { __typename } ${nested(`first: ${size}`, 'B')}`,
        operationName: 'B',
      }),
    ],
  ])(
    'D8 a cost of at most 1,000 is accepted, and a higher one is rejected: by %s',
    async (_how, requestOf) => {
      expect(await answered(requestOf(96))).toBe(200);
      expect(await rejection(requestOf(97), TOO_COMPLEX)).toBe(400);
      expect(await rejection(requestOf(100), TOO_COMPLEX)).toBe(400);
    },
  );

  test.each<[string, (count: number) => GraphqlRequest]>([
    ['a list', (count) => ({ query: listed(ids(count)) })],
    [
      'a variable',
      (count) => ({
        query: listed('$ids', '($ids: [ID!]!)'),
        variables: { ids: JSON.parse(ids(count)) as unknown },
      }),
    ],
  ])('D8 a list by ids costs the sum of its ids: %s', async (_how, requestOf) => {
    expect(await answered(requestOf(50))).toBe(200);
    expect(await rejection(requestOf(51), TOO_COMPLEX)).toBe(400);
    expect(await rejection(requestOf(100), TOO_COMPLEX)).toBe(400);
    // The contract allows at most 100 ids.
    expect(await rejection(requestOf(101), BAD_INPUT)).toBe(400);
  });

  test('D8 a mutation whose response costs too much is rejected and not executed', async () => {
    const user = await shop.makeUser();
    const query =
      'mutation { addItem(itemId: "lamp") { owner { items(first: 100) { nodes { owner { blog(first: 10) { nodes { title } } } } } } } }';
    const answer = await shop.graphql(query, {}, { as: user });
    expect([answer.status, codes(answer)]).toEqual([400, [TOO_COMPLEX]]);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test('D8 a field costs only if its directive includes it', async () => {
    const query = nested('first: 100')
      .replace('blog(first: 10)', 'blog(first: 10) @include(if: $y)')
      .replace('query ', 'query ($y: Boolean!)');
    for (const y of [false, true, false, true]) {
      expect(
        await (y
          ? rejection({ query, variables: { y } }, TOO_COMPLEX)
          : answered({ query, variables: { y } })),
      ).toBe(y ? 400 : 200);
    }
  });

  test.each<[string, number]>([
    ['{ __typename }', 0],
    ['{ me { username } }', 1],
    ['{ products(filter: { search: "a" }) { pageInfo { hasNextPage } } }', 301],
    ['{ products(first: 10, filter: { search: "a" }) { nodes { pk } } }', 311],
    ['{ products(first: 10, filter: { priceMin: 1 }) { totalCount nodes { pk } } }', 761],

    ['{ products(first: 3) { nodes { pk } } }', 4],

    [
      '{ node(id: "x") { ... on User { items(first: 5) { nodes { itemId } } } ... on Item { owner { username } } } }',
      7,
    ],
    ['{ nodes(ids: ["x", "y"]) { id ... on BlogEntry { creator { username } } } }', 4],
  ])('D8 the cost of %s is returned on request: %d', async (query, requested) => {
    const answer = await shop.rest('POST', '/graphql', {
      json: { query, extensions: { cost: true } },
    });
    expect(answer.body.extensions).toEqual({ cost: { requested, limit: 1_000 } });
    expect((await shop.graphql(query)).body).not.toHaveProperty('extensions');
  });

  test('D8 a request for the cost is rejected if it costs too much', async () => {
    const json = { query: nested('first: 97'), extensions: { cost: true } };
    expect(await rejection(json, TOO_COMPLEX)).toBe(400);
    expect((await shop.rest('POST', '/graphql', { json })).body.extensions).toEqual({
      cost: { requested: 1_002, limit: 1_000 },
    });
  });
});

describe('pages', () => {
  const page = (args: string, head = '') => `query ${head} { products(${args}) { nodes { pk } } }`;

  test.each<[string, GraphqlRequest]>([
    ['first', { query: page('first: 100000') }],

    ['a variable', { query: page('first: $n', '($n: Int)'), variables: { n: 100_000 } }],

    [
      'a fragment',
      {
        query: '{ ...A } fragment A on Query { ... { products(first: 100000) { nodes { pk } } } }',
      },
    ],
  ])(
    'D7 a page of more than 100 is rejected without a database query: %s',
    async (_how, request) => {
      // The contract has BAD_USER_INPUT for it, not QUERY_TOO_COMPLEX (graphql.md, "Pages").
      expect(await rejection(request, BAD_INPUT)).toBe(400);
    },
  );

  test('D7 a list in an input object has at most 100 entries', async () => {
    const barcodes = (count: number) => Array.from({ length: count }, () => shop.newBarcode());
    const query = 'query ($in: [EAN13!]) { products(filter: { barcodeIn: $in }) { nodes { pk } } }';
    const whole = 'query ($filter: ProductFilter) { products(filter: $filter) { nodes { pk } } }';
    const requests: GraphqlRequest[] = [101, 3_000].flatMap((count) => [
      { query, variables: { in: barcodes(count) } },
      { query: whole, variables: { filter: { barcodeIn: barcodes(count) } } },
      {
        query: `{ products(filter: { barcodeIn: ${JSON.stringify(barcodes(Math.min(count, 900)))} }) { nodes { pk } } }`,
      },
    ]);
    for (const json of requests) {
      const { answer, statements } = await recordStatements(() =>
        shop.rest('POST', '/graphql', { json }),
      );
      expect([codes(answer), answer.body.data ?? null, statements]).toEqual([
        [BAD_INPUT],
        null,
        [],
      ]);
    }
    expect(await answered({ query, variables: { in: barcodes(100) } })).toBe(200);
  });
});

describe('invalid values', () => {
  // Beside a page that costs too much: an error elsewhere must not bypass its cost.
  const beside = (args: string, head = '', directive = '') =>
    `query ${head} { a: products(first: 1 ${args}) ${directive} { nodes { pk } } ${nested('first: 100').slice(8)}`;

  test.each<[string, GraphqlRequest, string]>([
    [
      'null for a non-null value, by a default',
      {
        query: beside('orderBy: { field: PK, direction: $d }', '($d: OrderDirection = ASC)'),
        variables: { d: null },
      },
      BAD_INPUT,
    ],

    [
      'a variable of the wrong type',
      { query: beside('after: $d', '($d: String)'), variables: { d: 1 } },
      BAD_INPUT,
    ],

    [
      'an invalid scalar',
      { query: beside('filter: { priceMin: $d }', '($d: Price)'), variables: { d: 'x' } },
      TOO_COMPLEX,
    ],

    ['a variable that is not declared', { query: beside('first: $d') }, INVALID],
  ])('D8 an error elsewhere does not bypass the cost: %s', async (_how, request, code) => {
    expect(await rejection(request, code)).toBe(400);
  });

  test.each(['"97"', '97.00000000000000000001'])(
    'D8 a page size that is not an integer is rejected: %s',
    async (size) => {
      const body = `{"query":${JSON.stringify(nested('first: $n', '($n: Int)'))},"variables":{"n":${size}}}`;
      const { answer, statements } = await recordStatements(() =>
        shop.rest('POST', '/graphql', { body, headers: { 'Content-Type': 'application/json' } }),
      );
      expect([answer.status, codes(answer), statements]).toEqual([400, [BAD_INPUT], []]);
    },
  );
});

describe('other request forms', () => {
  test('D7 a query in the URL has the same limits, by GET and by HEAD', async () => {
    const path = (size: number) =>
      `/graphql?${new URLSearchParams({ query: nested('first: $n', '($n: Int)'), variables: JSON.stringify({ n: size }) }).toString()}`;
    const { answer, statements } = await recordStatements(() =>
      shop.rest('GET', path(97), { headers: PREFLIGHTED }),
    );
    expect([answer.status, codes(answer), statements]).toEqual([400, [TOO_COMPLEX], []]);
    const head = await recordStatements(() =>
      shop.rest('HEAD', path(97), { headers: PREFLIGHTED }),
    );
    expect([head.answer.status, head.statements]).toEqual([400, []]);
    expect((await shop.rest('GET', path(96), { headers: PREFLIGHTED })).body).toEqual({
      data: { node: null },
    });
  });
});

describe('variables that look alike', () => {
  test('D8 invalid ones do not allow valid ones', async () => {
    const query = nested('first: 100').replace('query ', 'query ($x: ID!)').replace('"x"', '$x');
    const invalid = await shop.rest('POST', '/graphql', { json: { query, variables: { x: {} } } });
    expect(codes(invalid)).toEqual([BAD_INPUT]);
    await rejection({ query, variables: { x: 'a' } }, TOO_COMPLEX);
  });

  test('D8 an absent one that is named like a member of all objects has its default', async () => {
    const pages = ['a', 'b', 'c', 'd'].map(
      (name) => `${name}: products(first: 1, filter: $toString) { nodes { pk } }`,
    );
    const query = `query ($toString: ProductFilter = {search: "ink"}) { ${pages.join(' ')} }`;
    await answered({ query, variables: { toString: {} } });
    await rejection({ query }, TOO_COMPLEX);
  });
});

/**
 * Expects the request to be rejected without data or a database query, and the next one to succeed.
 * Returns the status.
 */
async function rejection(request: GraphqlRequest, code: string): Promise<number> {
  const { answer, statements } = await recordStatements(() =>
    shop.rest('POST', '/graphql', { json: request }),
  );
  expect([answer.status, new Set(codes(answer)), 'data' in answer.body]).toEqual([
    400,
    new Set([code]),
    false,
  ]);
  expect(answer.text).not.toMatch(/call stack|node_modules|\.[jt]s\b/i);
  expect(statements).toEqual([]);
  expect(await answered({ query: '{ __typename }' })).toBe(200);
  return answer.status;
}

async function answered(json: GraphqlRequest): Promise<number> {
  const answer = await shop.rest('POST', '/graphql', { json });
  expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
  return answer.status;
}
