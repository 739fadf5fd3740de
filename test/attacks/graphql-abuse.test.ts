import { describe, expect, test } from '../support/jest.ts';
import { getIntrospectionQuery } from 'graphql';
import type { User } from '../../src/features/users/user.entity.ts';
import { heapUsed } from '../support/heap.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();
const INVALID = 'GRAPHQL_VALIDATION_FAILED';
const PREFLIGHTED = { 'apollo-require-preflight': 'true' };

describe('with introspection disabled', () => {
  const hidden = useShop({ GRAPHQL_EXPLORER: 'false' });

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
    [
      'the text of a document as its hash',
      { extensions: { persistedQuery: { version: 1, sha256Hash: '{ products { totalCount } }' } } },
    ],
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

describe('the cache of documents', () => {
  // Each comment is a token, of a hundred times its length in memory.
  test('D17 does not keep the comments of 40 documents', async () => {
    const send = async (index: number) =>
      shop.graphql(`{ a${index}: __typename ${'#\n'.repeat(30_000)} }`);
    expect((await send(0)).status).toBe(200);
    const before = heapUsed();
    for (let index = 1; index <= 40; index++) await send(index);
    expect((heapUsed() - before) / 2 ** 20).toBeLessThan(32);
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

describe('the schema', () => {
  test('D24 no input has the scopes, the state, the owner or a key of a row, except those of API keys', async () => {
    const inputs = (await typesOfSchema()).flatMap(({ name, inputFields }) =>
      (inputFields ?? []).map((field) => `${name}.${field.name}`),
    );
    expect(inputs.length).toBeGreaterThan(20);
    const owned = /\.(pk|id|hash|disabled|scopes?|user|owner|creator|createdAt|updatedAt)/i;
    expect(inputs.filter((name) => owned.test(name))).toEqual([
      'ApiKeyInput.scopes',
      'ConfirmationInput.username',
    ]);
  });

  test('D25 introspection shows no type, field or enum value for a secret, except the inputs and results of logins and API keys', async () => {
    const names = (await typesOfSchema()).flatMap(({ name, fields, inputFields, enumValues }) => [
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
});

test('D22 loaders are not shared between requests: each concurrent caller gets only its own data, by both APIs', async () => {
  const users: User[] = [];
  for (let made = 0; made < 8; made++) {
    const user = await shop.makeUser({ scopes: made % 2 === 0 ? [] : ['users:read'] });
    await shop.makeItem(user, `of ${user.username}`);
    await shop.makeEntry(user, { title: `draft of ${user.username}`, published: false });
    users.push(user);
  }
  const query =
    '{ me { username email items { nodes { itemId } } } blog { nodes { title creator { username } } } users { nodes { email items(first: 1) { nodes { itemId } } } } }';
  const callers = Array.from({ length: 200 }, (_, at) => users[at % users.length]).filter(
    (user) => user !== undefined,
  );
  const answers = await Promise.all(
    callers.map(async (as) => ({
      as,
      answer: await shop.graphql(query, {}, { as }),
      items: await shop.rest('GET', '/users/me/items/', { as }),
    })),
  );
  for (const { as, answer, items } of answers) {
    const { username, email } = as;
    expect(items.body).toEqual([{ item_id: `of ${username}`, owner: username }]);
    expect(answer.body.data).toEqual({
      me: { username, email, items: { nodes: [{ itemId: `of ${username}` }] } },
      blog: { nodes: [{ title: `draft of ${username}`, creator: { username } }] },
      users: {
        nodes: users.map((user) =>
          user === as || as.scopes.includes('users:read')
            ? { email: user.email, items: { nodes: [{ itemId: `of ${user.username}` }] } }
            : { email: null, items: { nodes: [] } },
        ),
      },
    });
  }
});

interface IntrospectionType {
  name: string;
  message: string;
  fields?: { name: string }[] | null;
  inputFields?: { name: string }[] | null;
  enumValues?: { name: string }[] | null;
}

/** The types of the schema, by introspection. */
async function typesOfSchema(): Promise<IntrospectionType[]> {
  const { body } = await shop.graphql(
    getIntrospectionQuery().replace('__schema', 'whole: __schema'),
  );
  return (body.data.whole.types as IntrospectionType[]).filter(
    ({ name }) => !name.startsWith('__'),
  );
}

function post(body: string): Promise<Answer> {
  return shop.rest('POST', '/graphql', { body, headers: { 'Content-Type': 'application/json' } });
}
