import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { getIntrospectionQuery } from 'graphql';
import { recordStatements } from '../support/statements.ts';
import { Shop, codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();
const INVALID = 'GRAPHQL_VALIDATION_FAILED';
const PREFLIGHTED = { 'apollo-require-preflight': 'true' };

describe('with introspection disabled', () => {
  const hidden = new Shop({ GRAPHQL_EXPLORER: 'false' });
  beforeAll(() => hidden.start());
  afterAll(() => hidden.stop());

  test.each([
    ['__schema', '{ __schema { types { name } } }'],

    ['inline fragments', '{ ... { ... on Query { __type(name: "User") { name } } } }'],

    [
      'a variable',
      'query ($n: String!, $y: Boolean = true) { __type(name: $n) @include(if: $y) { name } }',
    ],

    [
      'an operation that is not executed',
      'query A { __typename } query B { __schema { queryType { name } } }',
    ],
  ])('D15 introspection is rejected in every form: %s', async (_where, query) => {
    const operationName = query.startsWith('query A') ? 'A' : undefined;
    const { answer, statements } = await recordStatements(() =>
      hidden.rest('POST', '/graphql', { json: { query, variables: { n: 'User' }, operationName } }),
    );
    expect([answer.status, 'data' in answer.body, statements]).toEqual([400, false, []]);
    // The contract has the validation codes of Apollo Server, and a finer code beside them
    // (graphql.md, "Errors").
    expect(answer.body.errors).toContainEqual(
      expect.objectContaining({
        extensions: { code: INVALID, validationErrorCode: 'INTROSPECTION_DISABLED' },
      }),
    );
    expect(answer.text).not.toMatch(/hash|\bat .*\.js/);
  });

  test('D15 introspection by GET is rejected, and __typename is allowed', async () => {
    const path = `/graphql?query=${encodeURIComponent('{__schema{queryType{name}}}')}`;
    expect((await hidden.rest('GET', path, { headers: PREFLIGHTED })).status).toBe(400);
    expect((await hidden.graphql('{ __typename products { __typename } }')).body).toEqual({
      data: { __typename: 'Query', products: { __typename: 'ProductConnection' } },
    });
  });

  test.each<[string, string, object]>([
    ['a field', '{ product(pk: 1) { nam } }', {}],

    ['a field of an input', '{ products(filter: { serch: "x" }) { totalCount } }', {}],

    [
      'a field of an input in a variable',
      'query ($f: ProductFilter) { products(filter: $f) { totalCount } }',
      { f: { serch: 'x' } },
    ],
  ])(
    'D16 a misspelt name is rejected without a suggestion: %s',
    async (_what, query, variables) => {
      const answer = await hidden.graphql(query, variables as Record<string, unknown>);
      expect([answer.status, 'data' in answer.body]).toEqual([400, false]);
      expect(answer.text).not.toMatch(/did you mean/i);
    },
  );
});

describe('persisted queries', () => {
  const HASH = 'ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38';
  const extensions = { persistedQuery: { version: 1, sha256Hash: HASH } };

  test.each<[string, object]>([
    ['a hash alone', { extensions }],

    ['a hash and another document', { extensions, query: '{ products { totalCount } }' }],
    [
      'a hash of another version',
      { extensions: { persistedQuery: { version: 2, sha256Hash: HASH } }, query: '{__typename}' },
    ],
  ])('D17 documents are not registered: %s', async (_what, json) => {
    for (let time = 0; time < 2; time++) {
      const { answer, statements } = await recordStatements(() =>
        shop.rest('POST', '/graphql', { json }),
      );
      expect(statements).toEqual([]);
      expect(answer.body).toEqual({
        errors: [
          {
            message: 'PersistedQueryNotSupported',
            extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' },
          },
        ],
      });
    }
    const path = `/graphql?extensions=${encodeURIComponent(JSON.stringify(extensions))}`;
    expect(codes(await shop.rest('GET', path, { headers: PREFLIGHTED }))).toEqual([
      'PERSISTED_QUERY_NOT_SUPPORTED',
    ]);
    expect((await shop.graphql('{__typename}')).status).toBe(200);
  });
});

describe('variables', () => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`v${at}`, at]));
  const nest = (open: string, close: string, depth: number, inner: string) =>
    open.repeat(depth) + inner + close.repeat(depth);

  test('D18 thousands of undeclared variables are ignored', async () => {
    const answer = await shop.graphql('{ __typename }', {
      ...many(5_000),
      constructor: 1,
      toString: null,
    });
    expect([answer.status, answer.body]).toEqual([200, { data: { __typename: 'Query' } }]);
  });

  test.each([
    ['text', JSON.stringify({ v: 'x'.repeat(1_000_000) })],
    ['a list', JSON.stringify({ v: Array.from({ length: 200_000 }, () => 1) })],
  ])('D18 a megabyte of variables is 413: %s', async (_what, variables) => {
    const { answer, statements } = await recordStatements(() =>
      post(`{"query":"{ products { totalCount } }","variables":${variables}}`),
    );
    expect([answer.status, statements]).toEqual([413, []]);
    expect((await shop.graphql('{ __typename }')).status).toBe(200);
  });

  test.each([
    ['lists', nest('[', ']', 40_000, '')],
    ['objects', nest('{"a":', '}', 12_000, '1')],
    [
      'lists of a number that is exact only as text',
      nest('[', ']', 40_000, '12345678901234567890'),
    ],
  ])('D18 tens of thousands of nested %s are at most a bad request', async (_what, value) => {
    for (const [query, name] of [
      ['query ($v: ProductFilter) { products(filter: $v) { totalCount } }', 'v'],
      ['query ($v: [ID!]!) { nodes(ids: $v) { id } }', 'v'],
      ['{ __typename }', 'undeclared'],
    ]) {
      const answer = await post(
        `{"query":${JSON.stringify(query)},"variables":{"${name}":${value}}}`,
      );
      expect([200, 400]).toContain(answer.status);
      expect(answer.text).not.toMatch(/call stack|RangeError|\.[jt]s\b/i);
      // A declared variable is checked and rejected.
      expect('data' in answer.body && name === 'v').toBe(false);
    }
  });

  test.each([
    ['Int', '2147483648'],

    ['Int', '1e400'],

    ['Int!', 'null'],
  ])('D20 an invalid value of %s is a client error: %s', async (type, value) => {
    const { answer, statements } = await recordStatements(() =>
      post(
        `{"query":"query ($n: ${type}) { products(first: $n) { totalCount } }","variables":{"n":${value}}}`,
      ),
    );
    expect([answer.status, codes(answer), 'data' in answer.body, statements]).toEqual([
      400,
      ['BAD_USER_INPUT'],
      false,
      [],
    ]);
    expect(answer.text).not.toMatch(/stack|node_modules|\.[jt]s\b/i);
    expect(answer.body.errors[0].extensions).not.toHaveProperty('stacktrace');
  });
});

describe('internal errors', () => {
  test('D21 an internal error is masked, has a request id, and is described only in the log', async () => {
    const user = await shop.makeUser();
    await shop.sql('alter table item rename to item_secret_0815');
    try {
      const answer = await shop.graphql(
        '{ me { username items { totalCount } } }',
        {},
        { as: user },
      );
      expect([answer.status, answer.body.data]).toEqual([200, { me: null }]);
      const [{ message, extensions }] = answer.body.errors;
      expect([message, extensions]).toEqual([
        'Internal server error',
        { code: 'INTERNAL_SERVER_ERROR', requestId: expect.any(String) },
      ]);
      expect(answer.text).not.toMatch(/relation|exist|select|"item"|stack|42P01|\.[jt]s\b/i);
      const lines = shop.logged.filter((line) => line.includes(extensions.requestId));
      expect(lines).toHaveLength(1);
      expect(lines[0]).toContain('relation \\"item\\" does not exist');
    } finally {
      await shop.sql('alter table item_secret_0815 rename to item');
    }
    expect(
      (await shop.graphql('{ me { items { totalCount } } }', {}, { as: user })).body.data.me.items
        .totalCount,
    ).toBe(0);
  });
});

describe('the schema', () => {
  test('D25 introspection shows no type, field or enum value for a secret, except the inputs and results of logins and API keys', async () => {
    const answer = await shop.graphql(
      getIntrospectionQuery().replace('__schema', 'whole: __schema'),
    );
    const named = (answer.body.data.whole.types as IntrospectionType[]).filter(
      ({ name }) => !name.startsWith('__'),
    );
    const names = named.flatMap(({ name, fields, inputFields, enumValues }) => [
      name,
      ...[...(fields ?? []), ...(inputFields ?? []), ...(enumValues ?? [])].map(
        (member) => `${name}.${member.name}`,
      ),
    ]);
    expect(names.length).toBeGreaterThan(100);
    expect(names.filter((name) => /hash|passw|secret|salt|digest/i.test(name)).toSorted()).toEqual([
      'ConfirmationInput.password',
      'Mutation.changePassword',
      'Mutation.requestPasswordReset',
      'Mutation.resetPassword',
    ]);
    // A session key is returned only by the login, and an API key only at its creation.
    expect(names.filter((name) => /key|token/i.test(name.split('.')[1] ?? '')).toSorted()).toEqual([
      'ApiKeyPayload.apiKey',
      'ApiKeyPayload.key',
      // Enum values.
      'AuditActorKind.API_KEY',
      'AuditSubjectKind.API_KEY',
      'ConfirmationInput.token',
      'LoginPayload.accessToken',
      'LoginPayload.refreshToken',
      'LoginPayload.sessionKey',
      'LoginPayload.tokenType',
      'Mutation.createApiKey',
      'Mutation.revokeApiKey',
      'User.apiKeys',
    ]);
  });

  test.each(['hashed_password', 'password'])(
    'D25 %s of a user or a session cannot be queried',
    async (field) => {
      const user = await shop.makeUser();
      for (const query of [
        `{ me { ${field} } }`,
        `{ me { a: ${field} } }`,
        `{ me { sessions { nodes { ${field} } } } }`,
        `{ node(id: "x") { ... on User { ${field} } } }`,
        `{ blog { nodes { creator { ...A } } } } fragment A on User { ${field} }`,
      ]) {
        const answer = await shop.graphql(query, {}, { as: user });
        expect([answer.status, new Set(codes(answer)), 'data' in answer.body]).toEqual([
          400,
          new Set([INVALID]),
          false,
        ]);
      }
    },
  );
});

interface IntrospectionType {
  name: string;
  message: string;
  fields?: { name: string }[] | null;
  inputFields?: { name: string }[] | null;
  enumValues?: { name: string }[] | null;
}

function post(body: string): Promise<Answer> {
  return shop.rest('POST', '/graphql', { body, headers: { 'Content-Type': 'application/json' } });
}
