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

    [
      'in fragments within fragments',
      (levels) =>
        `{ me { ...A } } fragment A on User { blog(first: 1) { nodes { ...B } } }
         fragment B on BlogEntry { creator { ...C } } fragment C on User { ${below(levels - 4)} }`,
    ],
    [
      'in inline fragments',
      (levels) =>
        `{ ... { me { ... on User { ... @include(if: true) { ${below(levels - 1)} } } } } }`,
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
    ['one', '{ ...A } fragment A on Query { __typename ...A }'],

    ['many', `{ ...F0 } ${chain(60, 'Query', '...F0', 2)}`],
  ])('D3 a cycle of fragments is rejected: %s', async (_how, query) => {
    expect(await rejection(query, INVALID)).toBe(400);
  });
});

describe('aliases', () => {
  test.each([
    [
      '8 in a fragment that is spread twice',
      `{ products { nodes { ...A } edges { node { ...A } } } } fragment A on Product { ${aliases(8, 'pk')} }`,
    ],

    [
      '1 in a fragment that others spread 2^59 times',
      `{ products { nodes { ...F0 } } } ${chain(60, 'Product', 'a: pk', 2)}`,
    ],

    [
      '16 in the operation that is not executed',
      `query A { __typename } query B { products { nodes { ${aliases(16, 'pk')} } } }`,
    ],
  ])('D4 more than 15 aliases are rejected: %s', async (_how, query) => {
    expect(await rejection(query, TOO_COMPLEX)).toBe(400);
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
});

describe('several operations or fields', () => {
  const ADD = 'mutation { addItem(itemId: "lamp") { itemId } }';

  test.each([
    ['two', '[{"query":"{__typename}"},{"query":"{__typename}"}]'],

    ['one', JSON.stringify([{ query: ADD }])],
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

  test.each([
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
  const inNodes = (selection: string) => `{ products { nodes { ${selection} } } }`;

  test('D9 one directive in a fragment that others spread 2^59 times is rejected', async () => {
    const query = `${inNodes('...F0')} ${chain(60, 'Product', `pk ${ON}`, 2)}`;
    expect(await rejection(query, TOO_COMPLEX)).toBe(400);
  });

  test.each([
    ['one field has @include 51 times', inNodes(`pk ${ON.concat(' ').repeat(51)}`), INVALID],

    ['10,000 that are unknown', `{ __typename ${'@a '.repeat(10_000)} }`, UNPARSED],
  ])('D9 invalid directives are rejected: %s', async (_how, query, code) => {
    expect(await rejection(query, code)).toBe(400);
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
