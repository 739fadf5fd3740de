import { describe, expect, test } from '../support/jest.ts';
import { getIntrospectionQuery } from 'graphql';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

// Limits of a document, independent of its variables. Each limit is tested at its boundary, and
// with every way to bypass it.

const shop = useShop();

const TOO_COMPLEX = 'QUERY_TOO_COMPLEX';
const INVALID = 'GRAPHQL_VALIDATION_FAILED';
const UNPARSED = 'GRAPHQL_PARSE_FAILED';

/** A selection of `levels` levels on a User, along the cycle of users and their entries. */
function below(levels: number): string {
  if (levels === 1) return 'username';
  if (levels === 2) return 'blog(first: 1) { totalCount }';
  return levels === 3
    ? 'blog(first: 1) { nodes { title } }'
    : `blog(first: 1) { nodes { creator { ${below(levels - 3)} } } }`;
}

const aliases = (count: number, field: string, from = 0) =>
  Array.from({ length: count }, (_, index) => `a${from + index}: ${field}`).join(' ');
/** Fragments, from F0, each of which spreads the next one `times` times. */
const chain = (length: number, type: string, leaf: string, times: number) =>
  Array.from(
    { length },
    (_, at) =>
      `fragment F${at} on ${type} { ${at === length - 1 ? leaf : `...F${at + 1} `.repeat(times)} }`,
  ).join('\n');

describe('depth', () => {
  const ways: [string, (levels: number) => string][] = [
    ['plain', (levels) => `{ me { ${below(levels - 1)} } }`],
    ['under an alias', (levels) => `{ a: me { ${below(levels - 1)} } }`],
    [
      'under an alias named like introspection',
      (levels) => `{ __schema: me { ${below(levels - 1)} } }`,
    ],
    [
      'beside introspection',
      (levels) => `{ __schema { queryType { name } } me { ${below(levels - 1)} } }`,
    ],
    [
      'behind a shallow field',
      (levels) => `{ __typename products { totalCount } me { username ${below(levels - 1)} } }`,
    ],
    ['in a fragment', (levels) => `{ me { ...A } } fragment A on User { ${below(levels - 1)} }`],
    [
      'in fragments within fragments',
      (levels) =>
        `{ me { ...A } } fragment A on User { blog(first: 1) { nodes { ...B } } }
         fragment B on BlogEntry { creator { ...C } } fragment C on User { ${below(levels - 4)} }`,
    ],
    [
      'in a fragment that is first spread at a shallow level',
      (levels) =>
        `{ a: me { ...A } b: me { blog(first: 1) { nodes { creator { ...A } } } } } fragment A on User { ${below(levels - 4)} }`,
    ],
    [
      'in inline fragments',
      (levels) =>
        `{ ... { me { ... on User { ... @include(if: true) { ${below(levels - 1)} } } } } }`,
    ],
    ['by node', (levels) => `{ node(id: "x") { ... on User { ${below(levels - 1)} } } }`],
    [
      'by an interface',
      (levels) =>
        `{ nodes(ids: ["x"]) { ...N } } fragment N on Node { id ... on User { ${below(levels - 1)} } }`,
    ],
    ['in a skipped field', (levels) => `{ me @skip(if: true) { ${below(levels - 1)} } }`],
    [
      'in a field excluded by a variable',
      (levels) => `query ($d: Boolean = false) { me @include(if: $d) { ${below(levels - 1)} } }`,
    ],
    [
      'behind a shallow operation',
      (levels) => `query A { __typename } query B { me { ${below(levels - 1)} } }`,
    ],
  ];

  test.each(ways)(
    'D1 nine levels are rejected without a database query, and eight are accepted: %s',
    async (_how, query) => {
      // The contract has one code for all limits (graphql.md, "Errors").
      for (const levels of [9, 10, 60])
        expect(await rejection(query(levels), TOO_COMPLEX)).toBe(400);
      expect(await answered(query(8))).toBe(200);
    },
  );

  test('D1 a mutation with nine levels is rejected and not executed', async () => {
    await shop.makeUser({ username: 'ada' });
    const login = (levels: number) =>
      `mutation { login(username: "ada", password: "correct horse battery") { user { ${below(levels - 2)} } } }`;
    expect(await rejection(login(9), TOO_COMPLEX)).toBe(400);
    expect(await shop.sql('select * from session')).toEqual([]);
    expect(await answered(login(8))).toBe(200);
  });

  test('D1 nine levels are rejected, and eight accepted, also for a signed-in caller', async () => {
    const ada = await shop.makeUser({ username: 'ada' });
    await shop.makeEntry(ada);
    expect((await shop.graphql(`{ me { ${below(8)} } }`, {}, { as: ada })).status).toBe(400);
    const answer = await shop.graphql(`{ me { ${below(7)} } }`, {}, { as: ada });
    expect(answer.text).toContain(
      '{"creator":{"blog":{"nodes":[{"creator":{"username":"ada"}}]}}}',
    );
  });

  test('D1 introspection may be as deep as the query of tools, but has no cycles', async () => {
    expect((await shop.graphql(getIntrospectionQuery())).text).toMatch(/^\{"data":\{"__schema":/);
    for (const root of ['__schema { types', '__type(name: "Query")', 'a: __schema { types']) {
      const close = root.includes('types') ? ' }' : '';
      expect(
        await rejection(
          `{ ${root} { ${'fields { type { '.repeat(6)} name ${'} } '.repeat(6)} } }${close}`,
          INVALID,
        ),
      ).toBe(400);
    }
  });
});

describe('cyclic fragments', () => {
  test.each([
    ['two', '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }'],
    ['one', '{ ...A } fragment A on Query { __typename ...A }'],
    [
      'three',
      '{ ...A } fragment A on Query { ...B } fragment B on Query { ...C } fragment C on Query { ...A }',
    ],
    [
      'with fields between',
      '{ me { ...A } } fragment A on User { blog { nodes { creator { ...A } } } }',
    ],
    [
      'with inline fragments between',
      '{ me { ...A } } fragment A on User { ... on User { ... { ...A } } }',
    ],
    ['behind a directive', '{ me { ...A } } fragment A on User { ...A @skip(if: true) }'],
    [
      'by an interface',
      '{ node(id: "x") { ...A } } fragment A on Node { ... on User { blog { nodes { creator { ...A } } } } }',
    ],
    [
      'in a mutation',
      'mutation { ...A } fragment A on Mutation { ...B } fragment B on Mutation { logoutEverywhere { ended } ...A }',
    ],
    [
      'that is never spread',
      '{ __typename } fragment A on Query { ...B } fragment B on Query { ...A }',
    ],
    ['many', `{ ...F0 } ${chain(60, 'Query', '...F0', 2)}`],
  ])('D3 a cycle of fragments is rejected: %s', async (_how, query) => {
    expect(await rejection(query, INVALID)).toBe(400);
  });
});

describe('aliases', () => {
  test.each([
    ['16 on fields', `{ products { nodes { ${aliases(16, 'pk')} } } }`],
    ['101', `{ products { nodes { ${aliases(101, 'pk')} } } }`],
    ['16 of the same name', `{ products { nodes { ${'a: pk '.repeat(16)} } } }`],
    ['16 that are the field itself', `{ products { nodes { ${'pk: pk '.repeat(16)} } } }`],
    ['16 of __typename', `{ products { ${aliases(16, '__typename')} } }`],
    ['16 named __typename', `{ products { nodes { ${'__typename: pk '.repeat(16)} } } }`],
    [
      '8 in a fragment that is spread twice',
      `{ products { nodes { ...A } edges { node { ...A } } } } fragment A on Product { ${aliases(8, 'pk')} }`,
    ],
    [
      '4 in a fragment that others spread four times',
      `{ products { nodes { ...F0 } } } ${chain(3, 'Product', aliases(4, 'pk'), 2)}`,
    ],
    [
      '1 in a fragment that others spread 2^59 times',
      `{ products { nodes { ...F0 } } } ${chain(60, 'Product', 'a: pk', 2)}`,
    ],
    [
      '16 over inline fragments',
      `{ products { nodes { ${Array.from({ length: 4 }, (_, i) => `... { ${aliases(4, 'pk', 4 * i)} }`).join(' ')} } } }`,
    ],
    ['16 that are skipped', `{ products { nodes { ${aliases(16, 'pk @skip(if: true)')} } } }`],
    ['16 on several levels', `{ ${aliases(8, 'products { a: totalCount }')} }`],
    ['16 in introspection', `{ __schema { ${aliases(16, 'queryType { name }')} } }`],
    [
      '16 in the operation that is not executed',
      `query A { __typename } query B { products { nodes { ${aliases(16, 'pk')} } } }`,
    ],
  ])('D4 more than 15 aliases are rejected: %s', async (_how, query) => {
    expect(await rejection(query, TOO_COMPLEX)).toBe(400);
  });

  test('D4 more than 15 aliases of writes are rejected, and nothing is written', async () => {
    const user = await shop.makeUser();
    const answer = await shop.graphql(
      `mutation { ${aliases(16, 'addItem(itemId: "lamp") { itemId }')} }`,
      {},
      { as: user },
    );
    expect([answer.status, codes(answer)]).toEqual([400, [TOO_COMPLEX, TOO_COMPLEX]]);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test('D4 an alias of more than 100 characters is rejected, and one of 100 is accepted', async () => {
    await shop.makeProduct();
    const query = (length: number) => `{ products { nodes { ${'a'.repeat(length)}: pk } } }`;
    const rejected = await shop.graphql(query(101));
    expect([rejected.status, rejected.body.errors]).toEqual([
      400,
      [
        expect.objectContaining({
          message: 'The query has an alias of more than 100 characters',
          extensions: { code: TOO_COMPLEX },
        }),
      ],
    ]);
    const accepted = await shop.graphql(query(100));
    expect(Object.keys(accepted.body.data.products.nodes[0])).toEqual(['a'.repeat(100)]);
  });

  test('D4 exactly 15 aliases are accepted', async () => {
    await shop.makeProduct();
    const answer = await shop.graphql(`{ products { nodes { ${aliases(15, 'pk')} } } }`);
    expect(Object.keys(answer.body.data.products.nodes[0])).toHaveLength(15);
  });
});

describe('several operations or fields', () => {
  const ADD = 'mutation { addItem(itemId: "lamp") { itemId } }';

  test.each([
    ['two', '[{"query":"{__typename}"},{"query":"{__typename}"}]'],
    ['ten', JSON.stringify(Array.from({ length: 10 }, () => ({ query: ADD })))],
    ['one', JSON.stringify([{ query: ADD }])],
    ['none', '[]'],
    ['empty ones', '[{},{}]'],
    ['a list in a list', JSON.stringify([[{ query: ADD }]])],
    ['behind spaces', ` \n\t[{"query":"${ADD.replaceAll('"', '\\"')}"}]`],
  ])('D5 a batch is rejected, whatever it contains: %s', async (_how, body) => {
    const user = await shop.makeUser();
    const answer = await shop.rest('POST', '/graphql', {
      as: user,
      body,
      headers: { 'Content-Type': 'application/json' },
    });
    expect([answer.status, answer.body]).toEqual([
      400,
      {
        errors: [{ message: 'Operation batching disabled.', extensions: { code: 'BAD_REQUEST' } }],
      },
    ]);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  const half = (name: string, count: number) =>
    `fragment ${name} on Query { ${'me { username } '.repeat(count)} }`;

  test.each([
    ['eleven', `{ ${'me { username } '.repeat(11)} }`],
    ['ten, and __typename', `{ ${'me { username } '.repeat(10)} __typename }`],
    ['five, and six in a fragment', `{ ${'me { username } '.repeat(5)} ...A } ${half('A', 6)}`],
    ['over two fragments', `{ ...A ...B } ${half('A', 5)} ${half('B', 6)}`],
    [
      'over inline fragments',
      `{ ${'... { me { username } ... on Query { users { totalCount } } } '.repeat(6)} }`,
    ],
    [
      'in a fragment that others spread 2^59 times',
      `{ ...F0 } ${chain(60, 'Query', 'me { username }', 2)}`,
    ],
    ['that are skipped', `{ ${'me @skip(if: true) { username } '.repeat(11)} }`],
    [
      'that a variable excludes',
      `query ($n: Boolean = false) { ${'me @include(if: $n) { username } '.repeat(11)} }`,
    ],
    [
      'in the operation that is not executed',
      `query A { __typename } query B { ${'me { username } '.repeat(11)} }`,
    ],
    ['of introspection', `{ ${'__schema { queryType { name } } '.repeat(11)} }`],
  ])('D6 more than ten root fields are rejected: %s', async (_how, query) => {
    expect(await rejection(query, TOO_COMPLEX)).toBe(400);
  });

  test.each([
    [
      'eleven',
      'mutation { addItem(itemId: "lamp") { itemId } '.concat(
        'logoutEverywhere { ended } '.repeat(10),
        '}',
      ),
    ],
    ['fifty with aliases', `mutation { ${aliases(50, 'addItem(itemId: "lamp") { itemId }')} }`],
    [
      'in a fragment',
      `mutation { ...A } fragment A on Mutation { ${'addItem(itemId: "lamp") { itemId } '.repeat(11)} }`,
    ],
  ])('D6 more than ten writes are rejected, and none is executed: %s', async (_how, query) => {
    const user = await shop.makeUser();
    const answer = await shop.graphql(query, {}, { as: user });
    expect(answer.status).toBe(400);
    expect(codes(answer)).toContain(TOO_COMPLEX);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test('D6 fragments that others spread 2^39 times are answered where a variable is missing', async () => {
    const query = `query ($n: Int!) { products(first: $n) { nodes { ...F0 } } } ${chain(40, 'Product', 'pk', 2)}`;
    const answer = await shop.graphql(query);
    expect([answer.status, codes(answer)]).toEqual([400, ['BAD_USER_INPUT']]);
  });

  test('D6 ten root fields are answered, and ten writes are executed', async () => {
    const user = await shop.makeUser();
    expect((await shop.graphql(`{ ${'me { username } '.repeat(10)} }`)).body).toEqual({
      data: { me: null },
    });
    const writes = Array.from(
      { length: 10 },
      (_, at) => `a${at}: addItem(itemId: "item ${at}") { itemId }`,
    ).join(' ');
    const answer = await shop.graphql(`mutation { ${writes} }`, {}, { as: user });
    expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
    expect(await shop.sql('select * from item')).toHaveLength(10);
  });
});

describe('directives', () => {
  const ON = '@include(if: true)';
  const OFF = '@skip(if: true)';
  const inNodes = (selection: string) => `{ products { nodes { ${selection} } } }`;

  test.each([
    ['on fields', inNodes(`pk ${ON} `.repeat(51))],
    ['both kinds', inNodes(`pk ${ON} ${OFF} `.repeat(26))],
    ['on inline fragments', inNodes(`... ${ON} { pk } `.repeat(51))],
    [
      'on spreads of one fragment',
      `${inNodes(`...A ${ON} `.repeat(60))} fragment A on Product { pk }`,
    ],
    [
      'on spreads of two fragments',
      `${inNodes(`...A ${ON} ...B ${OFF} `.repeat(40))} fragment A on Product { pk } fragment B on Product { name }`,
    ],
    [
      'one in a fragment that others spread 2^59 times',
      `${inNodes('...F0')} ${chain(60, 'Product', `pk ${ON}`, 2)}`,
    ],
    ['by a variable', `query ($n: Boolean = false) ${inNodes('pk @include(if: $n) '.repeat(51))}`],
    ['in a skipped field', `{ products { nodes ${OFF} { ${`pk ${ON} `.repeat(50)} } } }`],
  ])('D9 more than 50 directives are rejected: %s', async (_how, query) => {
    expect(await rejection(query, TOO_COMPLEX)).toBe(400);
  });

  test.each([
    ['one field has @skip twice', inNodes(`pk ${OFF} ${OFF}`), INVALID],
    ['one field has @include 51 times', inNodes(`pk ${ON.concat(' ').repeat(51)}`), INVALID],
    [
      'one spread has @include twice',
      `${inNodes(`...A ${ON} ${ON}`)} fragment A on Product { pk }`,
      INVALID,
    ],
    ['400 that are unknown', `{ __typename ${'@a '.repeat(400)} }`, INVALID],
    ['10,000 that are unknown', `{ __typename ${'@a '.repeat(10_000)} }`, UNPARSED],
    ['at a query', `query ${ON} { __typename }`, INVALID],
    ['200 at a query', `query ${'@a '.repeat(200)} { __typename }`, INVALID],
    ['at a variable', `query ($a: ID! ${ON}) { product(pk: $a) { pk } }`, INVALID],
    [
      '200 at a variable',
      `query ($a: ID! ${'@a '.repeat(200)}) { product(pk: $a) { pk } }`,
      INVALID,
    ],
    ['at a fragment', `${inNodes('...A')} fragment A on Product ${ON} { pk }`, INVALID],
    [
      '200 at a fragment',
      `${inNodes('...A')} fragment A on Product ${'@a '.repeat(200)} { pk }`,
      INVALID,
    ],
    [
      'of the schema',
      inNodes('pk @deprecated name @specifiedBy(url: "x") barcode @oneOf'),
      INVALID,
    ],
    ['at a mutation', `mutation ${ON} { logoutEverywhere { ended } }`, INVALID],
  ])('D9 invalid directives are rejected: %s', async (_how, query, code) => {
    expect(await rejection(query, code)).toBe(400);
  });

  test('D9 50 directives are accepted', async () => {
    await shop.makeProduct();
    const answer = await shop.graphql(inNodes(`pk ${ON} `.repeat(50)));
    expect([answer.status, answer.body]).toEqual([
      200,
      { data: { products: { nodes: [{ pk: '1' }] } } },
    ]);
  });
});

/**
 * Expects the query to be rejected without data or a database query, and the next one to succeed.
 * Returns the status.
 */
async function rejection(query: string, code: string): Promise<number> {
  const { answer, statements } = await recordStatements(() => send(query));
  expect([answer.status, Object.keys(answer.body)]).toEqual([400, ['errors']]);
  expect(codes(answer)).toContain(code);
  // Validation errors of the language may come with errors of the limits.
  expect(
    codes(answer).filter((own) => own !== code && !(code === INVALID && own === TOO_COMPLEX)),
  ).toEqual([]);
  expect(answer.headers.get('Content-Type')).toMatch(/^application\/json\b/);
  expect(answer.text).not.toMatch(/call stack|node_modules|\.[jt]s\b/i);
  expect(statements).toEqual([]);
  expect((await shop.graphql('{ __typename }')).body).toEqual({ data: { __typename: 'Query' } });
  return answer.status;
}

async function answered(query: string): Promise<number> {
  const answer = await send(query);
  expect([answer.status, answer.body.errors]).toEqual([200, undefined]);
  return answer.status;
}

/** Sends the query. Of several operations, A is executed. */
function send(query: string): Promise<Answer> {
  return shop.rest('POST', '/graphql', {
    json: { query, ...(query.startsWith('query A ') && { operationName: 'A' }) },
  });
}
