import { describe, expect, test } from '../support/jest.ts';
import { counted } from '../support/statements.ts';
import { useShop, type Answer } from '../support/shop.ts';

// What an operation costs: one for each object that it could answer. Whatever the size is written as, it counts before anything runs.

const shop = useShop();

const TOO_COMPLEX = 'QUERY_TOO_COMPLEX';
const BAD_INPUT = 'BAD_USER_INPUT';
const INVALID = 'GRAPHQL_VALIDATION_FAILED';
const PREFLIGHTED = { 'apollo-require-preflight': 'true' };

interface Asked {
  query: string;
  variables?: unknown;
  operationName?: string;
  extensions?: object;
}

/** Ten entries and as many more of each one's creator as the arguments say: 992 with 96 of them, 1,002 with 97. */
const nested = (args: string, head = '') =>
  `query ${head} { node(id: "x") { ... on User { blog(first: 10) { nodes { creator { blog(${args}) { nodes { title } } } } } } } }`;
const ids = (count: number) => JSON.stringify(Array.from({ length: count }, () => 'x'));
/** Twenty for each id. */
const listed = (of: string, head = '') => `query ${head} { nodes(ids: ${of}) { ... on User { blog(first: 18) { nodes { title } } } } }`;

describe('the limit', () => {
  test.each<[string, (size: number) => Asked]>([
    ['first', (size) => ({ query: nested(`first: ${size}`) })],
    ['last', (size) => ({ query: nested(`last: ${size}`) })],
    ['last, beside first that is null', (size) => ({ query: nested(`first: null, last: ${size}`) })],
    ['first, beside last that is null', (size) => ({ query: nested(`last: null, first: ${size}`) })],
    ['a variable', (size) => ({ query: nested('first: $n', '($n: Int)'), variables: { n: size } })],
    ['a variable for last', (size) => ({ query: nested('last: $n', '($n: Int!)'), variables: { n: size } })],
    [
      'two variables, one null',
      (size) => ({ query: nested('first: $f, last: $n', '($f: Int, $n: Int)'), variables: { f: null, n: size } }),
    ],
    ['two variables, one left out', (size) => ({ query: nested('first: $f, last: $n', '($f: Int, $n: Int)'), variables: { n: size } })],
    ['a default', (size) => ({ query: nested('first: $n', `($n: Int = ${size})`) })],
    ['a default, with null for all variables', (size) => ({ query: nested('first: $n', `($n: Int = ${size})`), variables: null })],
    ['a default of what may not be null', (size) => ({ query: nested('first: $n', `($n: Int! = ${size})`), variables: {} })],
    ['a variable in place of a small default', (size) => ({ query: nested('first: $n', '($n: Int = 1)'), variables: { n: size } })],
    [
      'variables called like what every object has',
      (size) => ({
        query: nested(
          'first: $constructor',
          '($constructor: Int, $toString: Int = 1) { a: products(first: $toString) { totalCount } ...A } fragment A on Query',
        ),
        variables: { constructor: size },
      }),
    ],
    [
      'what a variable lets in',
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
      'a variable in a fragment',
      (size) => ({
        query: 'query ($n: Int) { ...A } fragment A on Query { node(id: "x") { ...B } } '.concat(
          'fragment B on User { blog(first: 10) { nodes { creator { blog(last: $n) { nodes { title } } } } } }',
        ),
        variables: { n: size },
      }),
    ],
    [
      'fragments on an interface',
      (size) => ({
        query: nested(`first: ${size}`).replace('... on User {', '... on Node { ... on Node { ... on User {').replace(/\}$/, '} } }'),
      }),
    ],
    ['an alias', (size) => ({ query: nested(`first: ${size}`).replace('creator {', 'a: creator {').replace('nodes {', 'b: nodes {') })],
    ['the operation that is named', (size) => ({ query: `query A { __typename } ${nested(`first: ${size}`, 'B')}`, operationName: 'B' })],
    [
      'several, none of them dear',
      (size) => ({
        query: `{ me { id } ${'products(first: 100) { edges { node { pk } } nodes { pk } } '.repeat(3)} nodes(ids: ${ids(size)}) { id } }`,
      }),
    ],
  ])('D8 what comes to a thousand is answered, and what comes to more is refused: by %s', async (_how, asked) => {
    expect(await answered(asked(96))).toBe(200);
    expect(await refusal(asked(97), TOO_COMPLEX)).toBe(400);
    expect(await refusal(asked(100), TOO_COMPLEX)).toBe(400);
  });

  test.each<[string, (count: number) => Asked]>([
    ['a list', (count) => ({ query: listed(ids(count)) })],
    ['a variable', (count) => ({ query: listed('$ids', '($ids: [ID!]!)'), variables: { ids: JSON.parse(ids(count)) as unknown } })],
    ['a default', (count) => ({ query: listed('$ids', `($ids: [ID!]! = ${ids(count)})`) })],
    ['a list of variables', (count) => ({ query: listed(`[${'$id '.repeat(count)}]`, '($id: ID!)'), variables: { id: 'x' } })],
  ])('D8 a list by ids costs what each id costs: %s', async (_how, asked) => {
    expect(await answered(asked(50))).toBe(200);
    expect(await refusal(asked(51), TOO_COMPLEX)).toBe(400);
    expect(await refusal(asked(100), TOO_COMPLEX)).toBe(400);
    // The contract has at most 100 ids.
    expect(await refusal(asked(101), BAD_INPUT)).toBe(400);
  });

  test('D8 one id in place of a list is one', async () => {
    expect(await answered({ query: listed('"x"') })).toBe(200);
    expect(await answered({ query: listed('$ids', '($ids: [ID!]!)'), variables: { ids: 'x' } })).toBe(200);
  });

  test('D8 a hundred of a hundred are refused, for whoever is signed in, too', async () => {
    const user = await shop.makeUser();
    const query = '{ users(first: 100) { nodes { blog(first: 100) { nodes { title } } } } }';
    expect(await refusal({ query }, TOO_COMPLEX)).toBe(400);
    const answer = await shop.graphql(query, {}, { as: user });
    expect([answer.status, codes(answer), 'data' in answer.body]).toEqual([400, [TOO_COMPLEX], false]);
    expect((await shop.graphql('{ me { username } }', {}, { as: user })).body.data.me).toEqual({ username: user.username });
  });

  test('D8 a mutation that would answer too much is refused, and nothing is done', async () => {
    const user = await shop.makeUser();
    const query =
      'mutation { addItem(itemId: "lamp") { owner { items(first: 100) { nodes { owner { blog(first: 10) { nodes { title } } } } } } } }';
    const answer = await shop.graphql(query, {}, { as: user });
    expect([answer.status, codes(answer)]).toEqual([400, [TOO_COMPLEX]]);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test('D8 what is switched off costs nothing, and costs again once it is on', async () => {
    const query = nested('first: 100')
      .replace('blog(first: 10)', 'blog(first: 10) @include(if: $y)')
      .replace('query ', 'query ($y: Boolean!)');
    for (const y of [false, true, false, true]) {
      expect(await (y ? refusal({ query, variables: { y } }, TOO_COMPLEX) : answered({ query, variables: { y } }))).toBe(y ? 400 : 200);
    }
  });

  test.each<[string, number]>([
    ['{ __typename }', 0],
    ['{ me { username } }', 1],
    ['{ products { totalCount pageInfo { hasNextPage } } }', 1],
    ['{ products { nodes { pk name price } } }', 21],
    ['{ products(first: 3) { nodes { pk } } }', 4],
    ['{ products(first: 3) { edges { cursor node { pk } } } }', 7],
    ['{ products(last: 3) { edges { node { pk } } nodes { pk } } }', 10],
    ['{ node(id: "x") { ... on User { items(first: 5) { nodes { itemId } } } ... on Item { owner { username } } } }', 7],
    ['{ nodes(ids: ["x", "y"]) { id ... on BlogEntry { creator { username } } } }', 4],
    ['{ users(first: 2) { nodes { items(first: 3) { nodes { itemId owner { username } } } } } }', 17],
  ])('D8 the cost of %s is told to whoever asks: %d', async (query, requested) => {
    const answer = await shop.rest('POST', '/graphql', { json: { query, extensions: { cost: true } } });
    expect(answer.body.extensions).toEqual({ cost: { requested, limit: 1_000 } });
    expect((await shop.graphql(query)).body).not.toHaveProperty('extensions');
  });

  test('D8 asking for the cost refuses what is too dear all the same', async () => {
    const json = { query: nested('first: 97'), extensions: { cost: true } };
    expect(await refusal(json, TOO_COMPLEX)).toBe(400);
    expect((await shop.rest('POST', '/graphql', { json })).body.extensions).toEqual({ cost: { requested: 1_002, limit: 1_000 } });
  });
});

describe('pages', () => {
  const page = (args: string, head = '') => `query ${head} { products(${args}) { nodes { pk } } }`;

  test.each<[string, Asked]>([
    ['first', { query: page('first: 100000') }],
    ['first, by one', { query: page('first: 101') }],
    ['last', { query: page('last: 100000') }],
    ['both', { query: page('first: 1, last: 100000') }],
    ['a variable', { query: page('first: $n', '($n: Int)'), variables: { n: 100_000 } }],
    ['a variable for last', { query: page('last: $n', '($n: Int!)'), variables: { n: 2_147_483_647 } }],
    ['a default', { query: page('first: $n', '($n: Int = 100000)') }],
    ['a variable in place of a small default', { query: page('first: $n', '($n: Int = 1)'), variables: { n: 100_000 } }],
    ['a fragment', { query: '{ ...A } fragment A on Query { ... { products(first: 100000) { nodes { pk } } } }' }],
    ['a list inside a list', { query: '{ users(first: 1) { nodes { items(first: 101) { totalCount } } } }' }],
    ['a list inside nothing', { query: '{ node(id: "x") { ... on User { items(last: 101) { totalCount } } } }' }],
    ['an alias in front of a small one', { query: '{ a: products(first: 100000) { totalCount } products(first: 1) { nodes { pk } } }' }],
    ['only a count', { query: '{ products(first: 100000) { totalCount } }' }],
  ])('D7 a page of more than a hundred is refused before anything is asked: %s', async (_how, asked) => {
    // The contract calls such a page BAD_USER_INPUT, not too complex (graphql.md, "Pages").
    expect(await refusal(asked, BAD_INPUT)).toBe(400);
  });

  test.each(['first: 0', 'last: 0', 'first: -5', 'first: 2, last: 2', 'first: 100, last: 1', 'first: 1, last: 100'])(
    'D7 a page by (%s) is no page',
    async (args) => {
      const { answer, statements } = await counted(() => shop.graphql(page(args)));
      expect([codes(answer), answer.body.data ?? null, statements]).toEqual([[BAD_INPUT], null, []]);
    },
  );

  test('D7 a list in an input object has a hundred entries at most', async () => {
    const barcodes = (count: number) => Array.from({ length: count }, () => shop.newBarcode());
    const query = 'query ($in: [EAN13!]) { products(filter: { barcodeIn: $in }) { nodes { pk } } }';
    const whole = 'query ($filter: ProductFilter) { products(filter: $filter) { nodes { pk } } }';
    const asks: Asked[] = [101, 3_000].flatMap((count) => [
      { query, variables: { in: barcodes(count) } },
      { query: whole, variables: { filter: { barcodeIn: barcodes(count) } } },
      { query: `{ products(filter: { barcodeIn: ${JSON.stringify(barcodes(Math.min(count, 900)))} }) { nodes { pk } } }` },
    ]);
    for (const json of asks) {
      const { answer, statements } = await counted(() => shop.rest('POST', '/graphql', { json }));
      expect([codes(answer), answer.body.data ?? null, statements]).toEqual([[BAD_INPUT], null, []]);
    }
    expect(await answered({ query, variables: { in: barcodes(100) } })).toBe(200);
  });
});

describe('values that are none', () => {
  // Beside a page that is far too dear: what is wrong elsewhere must not be a way past its cost.
  const beside = (args: string, head = '', directive = '') =>
    `query ${head} { a: products(first: 1 ${args}) ${directive} { nodes { pk } } ${nested('first: 100').slice(8)}`;

  test.each<[string, Asked, string]>([
    [
      'null for what may not be null, by way of a default',
      { query: beside('orderBy: { field: PK, direction: $d }', '($d: OrderDirection = ASC)'), variables: { d: null } },
      BAD_INPUT,
    ],
    [
      'null for a condition, by way of a default',
      { query: beside('', '($d: Boolean = true)', '@include(if: $d)'), variables: { d: null } },
      BAD_INPUT,
    ],
    ['null for a condition that skips', { query: beside('', '($d: Boolean = false)', '@skip(if: $d)'), variables: { d: null } }, BAD_INPUT],
    ['a variable of the wrong type', { query: beside('after: $d', '($d: String)'), variables: { d: 1 } }, BAD_INPUT],
    ['a variable that is missing', { query: beside('after: $d', '($d: String!)') }, BAD_INPUT],
    ['a variable that is null', { query: beside('after: $d', '($d: String!)'), variables: { d: null } }, BAD_INPUT],
    ['a field of an input that is unknown', { query: beside('filter: $d', '($d: ProductFilter)'), variables: { d: { x: 1 } } }, BAD_INPUT],
    ['an enum that is none', { query: beside('orderBy: { field: $d }', '($d: ProductOrderField!)'), variables: { d: 'X' } }, BAD_INPUT],
    ['a scalar that refuses', { query: beside('filter: { priceMin: $d }', '($d: Price)'), variables: { d: 'x' } }, TOO_COMPLEX],
    ['a scalar that refuses, in the document', { query: beside('filter: { priceMin: "x" }') }, TOO_COMPLEX],
    ['a variable that is not declared', { query: beside('first: $d') }, INVALID],
    ['a variable that nobody uses', { query: beside('', '($d: Int)') }, INVALID],
    ['a variable of another type than its place', { query: beside('after: $d', '($d: Int)'), variables: { d: 1 } }, INVALID],
    ['an argument given twice', { query: beside('first: 2') }, INVALID],
    [
      'variables whose names are not their own',
      { query: beside('after: $__proto__', '($__proto__: String!)'), variables: JSON.parse('{"__proto__":{"a":1}}') as unknown },
      BAD_INPUT,
    ],
  ])('D8 what is wrong beside it is no way past the cost: %s', async (_how, asked, code) => {
    expect(await refusal(asked, code)).toBe(400);
  });

  test.each(['[97]', '{"a":97}', '"97"', '97.5', 'true', '1e400', '97.00000000000000000001', '2147483648', '-2147483649', '"NaN"'])(
    'D8 a size that is no whole number is refused: %s',
    async (size) => {
      const body = `{"query":${JSON.stringify(nested('first: $n', '($n: Int)'))},"variables":{"n":${size}}}`;
      const { answer, statements } = await counted(() =>
        shop.rest('POST', '/graphql', { body, headers: { 'Content-Type': 'application/json' } }),
      );
      expect([answer.status, codes(answer), statements]).toEqual([400, [BAD_INPUT], []]);
    },
  );

  test.each(['97.0', '9.7e1', '970E-1', '0.97e2'])('D8 a whole number is one however it is written: %s', async (size) => {
    const body = `{"query":${JSON.stringify(nested('first: $n', '($n: Int)'))},"variables":{"n":${size}}}`;
    const answer = await shop.rest('POST', '/graphql', { body, headers: { 'Content-Type': 'application/json' } });
    expect([answer.status, codes(answer)]).toEqual([400, [TOO_COMPLEX]]);
  });
});

describe('other doors into the same', () => {
  test('D7 a query in the address has the same limits, by GET and by HEAD', async () => {
    const path = (size: number) =>
      `/graphql?${new URLSearchParams({ query: nested('first: $n', '($n: Int)'), variables: JSON.stringify({ n: size }) }).toString()}`;
    const { answer, statements } = await counted(() => shop.rest('GET', path(97), { headers: PREFLIGHTED }));
    expect([answer.status, codes(answer), statements]).toEqual([400, [TOO_COMPLEX], []]);
    const head = await counted(() => shop.rest('HEAD', path(97), { headers: PREFLIGHTED }));
    expect([head.answer.status, head.statements]).toEqual([400, []]);
    expect((await shop.rest('GET', path(96), { headers: PREFLIGHTED })).body).toEqual({ data: { node: null } });
  });

  test.each(['application/json', 'application/graphql-response+json', '*/*', 'application/json, application/graphql-response+json;q=0.5'])(
    'D7 a limit is 400 whatever media type is asked for: %s',
    async (Accept) => {
      for (const query of [nested('first: 97'), '{ products(first: 101) { totalCount } }', `{ ${'me { username } '.repeat(11)} }`]) {
        const answer = await shop.rest('POST', '/graphql', { json: { query }, headers: { Accept } });
        expect([answer.status, 'data' in answer.body]).toEqual([400, false]);
      }
    },
  );
});

/** Asserts that it is refused as a whole, that nothing was asked of the database, and that the next request is answered. Returns its status. */
async function refusal(asked: Asked, code: string): Promise<number> {
  const { answer, statements } = await counted(() => shop.rest('POST', '/graphql', { json: asked }));
  expect([answer.status, new Set(codes(answer)), 'data' in answer.body]).toEqual([400, new Set([code]), false]);
  expect(answer.text).not.toMatch(/call stack|node_modules|\.[jt]s\b/i);
  expect(statements).toEqual([]);
  expect(await answered({ query: '{ __typename }' })).toBe(200);
  return answer.status;
}

async function answered(json: Asked): Promise<number> {
  const answer = await shop.rest('POST', '/graphql', { json });
  expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
  return answer.status;
}

function codes({ body }: Answer): string[] {
  return (body.errors ?? []).map(({ extensions }: { extensions: { code: string } }) => extensions.code);
}
