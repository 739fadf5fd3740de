import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { Shop, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();
const PREFLIGHTED = { 'apollo-require-preflight': 'true' };
const UNAUTHENTICATED = [{ message: expect.any(String), extensions: { code: 'UNAUTHENTICATED' } }];

describe('GraphQL contract, Errors', () => {
  test('a document that cannot be parsed is 400 GRAPHQL_PARSE_FAILED', async () => {
    const answer = await shop.graphql('{ products {');
    expect([answer.status, codes(answer)]).toEqual([400, ['GRAPHQL_PARSE_FAILED']]);
  });

  test('a document that the schema does not allow is 400 GRAPHQL_VALIDATION_FAILED', async () => {
    const answer = await shop.graphql('{ me { hashedPassword } }');
    expect([answer.status, codes(answer)]).toEqual([400, ['GRAPHQL_VALIDATION_FAILED']]);
  });

  test('variables of another type are 400 BAD_USER_INPUT', async () => {
    const answer = await shop.graphql('query ($pk: ID!) { product(pk: $pk) { name } }', {
      pk: { x: 1 },
    });
    expect([answer.status, codes(answer)]).toEqual([400, ['BAD_USER_INPUT']]);
  });

  test('a field that needs a signed-in caller is UNAUTHENTICATED, and no more than that field fails', async () => {
    const answer = await shop.graphql('{ me { username } users { totalCount } }');
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      data: null,
      errors: [
        {
          message: 'Not authenticated',
          path: ['users'],
          locations: [expect.anything()],
          extensions: { code: 'UNAUTHENTICATED' },
        },
      ],
    });
  });

  test('extensions.fields lists field and message of each rejected field', async () => {
    const writer = await shop.makeUser({ scopes: ['blog:write'] });
    const answer = await shop.graphql(
      'mutation { createBlogEntry(input: { title: "", body: "" }) { id } }',
      {},
      { as: writer },
    );
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [
        { field: 'title', message: 'String should have at least 1 character' },
        { field: 'body', message: 'String should have at least 1 character' },
      ],
    });
  });

  test.each(['4006381333932', 'x; y', '" at "input.name"; Expected', '', 4_006_381_333_931])(
    'extensions.fields lists a rejected barcode and price, too: %j',
    async (barcode) => {
      const writer = await shop.makeUser({ scopes: ['products:write'] });
      const query = 'mutation ($input: ProductInput!) { createProduct(input: $input) { pk } }';
      const answer = await shop.graphql(
        query,
        { input: { name: 'Lamp', barcode, price: '1.999' } },
        { as: writer },
      );
      expect(codes(answer)).toContain('BAD_USER_INPUT');
      expect(
        answer.body.errors.flatMap(({ extensions }: ExtendedError) => extensions.fields),
      ).toEqual([
        { field: expect.stringMatching(/^(input\.)?barcode$/), message: expect.any(String) },
        { field: expect.stringMatching(/^(input\.)?price$/), message: expect.any(String) },
      ]);
    },
  );
});

describe('GraphQL contract, Bad credentials fail the whole request with 401', () => {
  test.each([
    ['a malformed token', () => ({ token: 'x' })],
    [
      'a token of another key',
      () => ({ token: `${shopToken('ada').split('.').slice(0, 2).join('.')}.${'A'.repeat(43)}` }),
    ],
    ['a token that has expired', () => ({ token: shopToken('ada', -1) })],
    ['a token of a user who does not exist', () => ({ token: shopToken('nobody') })],
    [
      'a token of a session that does not exist',
      () => ({ token: createAccessToken(shop.context(), { username: 'ada', sid: 'none' }) }),
    ],
    ['a session key that does not exist', () => ({ sessionKey: 'x' })],
    [
      'two session keys that differ',
      () => ({ headers: { 'X-SESSION-ID': 'x', 'X-SESSIONID': 'y' } }),
    ],
  ])('%s', async (_name, credentials) => {
    await shop.makeUser({ username: 'ada' });
    const answer = await shop.graphql('{ products { totalCount } }', {}, credentials());
    expect(answer.status).toBe(401);
    expect(answer.headers.get('WWW-Authenticate')).toMatch(/^Bearer\b/);
    expect(answer.body).toEqual({ errors: UNAUTHENTICATED });
  });

  test('a disabled user is 400 INACTIVE_USER', async () => {
    const user = await shop.makeUser({ disabled: true });
    const answer = await shop.graphql('{ products { totalCount } }', {}, { as: user });
    expect(answer.status).toBe(400);
    expect(answer.body).toEqual({
      errors: [{ message: 'Inactive user', extensions: { code: 'INACTIVE_USER' } }],
    });
  });

  test('both kinds of valid credentials are accepted', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const login = await shop.graphql(
      'mutation { login(username: "ada", password: "correct horse battery") { sessionKey } }',
    );
    const byToken = await shop.graphql('{ me { username } }', {}, { as: user });
    const byKey = await shop.graphql(
      '{ me { username } }',
      {},
      { sessionKey: login.body.data.login.sessionKey },
    );
    expect([byToken.body, byKey.body]).toEqual([
      { data: { me: { username: 'ada' } } },
      { data: { me: { username: 'ada' } } },
    ]);
  });
});

describe('GraphQL contract, An internal error shows an id that is in the log, and nothing else', () => {
  test.each([
    ['in a field of Query', 'product', '{ products { totalCount } }'],
    ['in a list inside a list', 'item', '{ users { nodes { items { totalCount } } } }'],
    ['in a mutation', 'item', 'mutation { addItem(itemId: "lamp") { itemId } }'],
  ])('%s', async (_name, table, query) => {
    const user = await shop.makeUser();
    const answer = await without(table, () => shop.graphql(query, {}, { as: user }));
    expect(codes(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
    expect(answer.body.data).toBeNull();
    expectMasked(answer);
  });

  test('while the credentials are checked', async () => {
    const user = await shop.makeUser();
    const answer = await without('user', () =>
      shop.graphql('{ products { totalCount } }', {}, { as: user }),
    );
    expect(answer.status).toBe(500);
    expect(codes(answer)).toEqual(['INTERNAL_SERVER_ERROR']);
    expectMasked(answer);
  });
});

describe('GraphQL contract, the schema is shown only with GRAPHQL_EXPLORER', () => {
  const hidden = new Shop({ GRAPHQL_EXPLORER: 'false' });
  beforeAll(() => hidden.start());
  afterAll(() => hidden.stop());

  test('with GRAPHQL_EXPLORER introspection is served', async () => {
    const answer = await shop.graphql('{ __schema { queryType { name } } }');
    expect(answer.body).toEqual({ data: { __schema: { queryType: { name: 'Query' } } } });
  });

  test.each(['{ __schema { queryType { name } } }', '{ __type(name: "User") { name } }'])(
    'without it %s is rejected',
    async (query) => {
      const answer = await hidden.graphql(query);
      expect([answer.status, codes(answer)]).toEqual([400, ['GRAPHQL_VALIDATION_FAILED']]);
      expect(answer.body.errors[0].message).toBe(
        'Introspection is disabled on this server (GRAPHQL_EXPLORER)',
      );
    },
  );

  test('without it __typename is still served', async () => {
    const answer = await hidden.graphql('{ __typename }');
    expect(answer.body).toEqual({ data: { __typename: 'Query' } });
  });

  test.each([
    ['a field', '{ produts { totalCount } }', {}],
    ['an argument', '{ products(fist: 1) { totalCount } }', {}],
    ['a type', 'query ($order: ProductOder) { __typename }', {}],
    [
      'a value of an enum in a variable',
      'query ($order: ProductOrder) { products(orderBy: $order) { totalCount } }',
      { order: { field: 'NAM' } },
    ],
    [
      'a field of an input in a variable',
      'query ($filter: ProductFilter) { products(filter: $filter) { totalCount } }',
      { filter: { serch: 'x' } },
    ],
  ])('without it %s that is misspelt gets no suggestion', async (_name, query, variables) => {
    const answer = await hidden.graphql(query, variables);
    expect(answer.status).toBe(400);
    expect(answer.text).not.toMatch(/did you mean/i);
  });

  test('without it GET shows a browser no page', async () => {
    const answer = await hidden.rest('GET', '/graphql', { headers: { Accept: 'text/html' } });
    expect(answer.status).toBe(406);
    expect(answer.text).not.toContain('<');
  });
});

describe('GraphQL over HTTP', () => {
  test('several operations in one request are rejected', async () => {
    const answer = await shop.rest('POST', '/graphql', {
      json: [{ query: '{ __typename }' }, { query: '{ __typename }' }],
    });
    expect([answer.status, codes(answer)]).toEqual([400, ['BAD_REQUEST']]);
  });

  test('a query by GET needs no header', async () => {
    const answer = await shop.rest('GET', '/graphql?query={__typename}');
    expect([answer.status, answer.body]).toEqual([200, { data: { __typename: 'Query' } }]);
  });

  test('a mutation by GET is 405, and does nothing', async () => {
    const user = await shop.makeUser();
    const query = encodeURIComponent('mutation { addItem(itemId: "lamp") { itemId } }');
    const answer = await shop.rest('GET', `/graphql?query=${query}`, {
      as: user,
      headers: PREFLIGHTED,
    });
    expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'POST']);
    expect(await shop.sql('select * from item')).toEqual([]);
  });

  test('HEAD has the response of GET, without the body', async () => {
    const answer = await shop.rest('HEAD', '/graphql?query={__typename}', { headers: PREFLIGHTED });
    expect([answer.status, answer.text]).toEqual([200, '']);
    expect(answer.headers.get('Content-Type')).toBe('application/json; charset=utf-8');
  });

  test.each(['PUT', 'PATCH', 'DELETE'])('%s is 405 and says what is allowed', async (method) => {
    const answer = await shop.rest(method, '/graphql');
    expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'GET, POST, OPTIONS']);
    expect(answer.body).toEqual({
      errors: [
        { message: `Method "${method}" not allowed.`, extensions: { code: 'METHOD_NOT_ALLOWED' } },
      ],
    });
  });

  test.each(['/graphql', '/graphql/'])(
    'OPTIONS %s is 200 without a body, with the headers of the interface',
    async (path) => {
      const answer = await shop.rest('OPTIONS', path);
      expect([answer.status, answer.text]).toEqual([200, '']);
      expect(corsHeaders(answer)).toEqual([
        '*',
        'GET, POST, OPTIONS',
        'Content-Type',
        'GET, POST, OPTIONS',
      ]);
    },
  );

  test('OPTIONS grants the headers that a browser requests', async () => {
    const requested = 'authorization,content-type,x-session-id,x-other';
    const headers = {
      Origin: 'https://client.example',
      'Access-Control-Request-Method': 'POST',
      'Access-Control-Request-Headers': requested,
    };
    const answer = await shop.rest('OPTIONS', '/graphql', { headers });
    expect(answer.headers.get('Access-Control-Allow-Headers')).toBe(
      'Content-Type, authorization, x-session-id, x-other',
    );
  });

  test('every response is readable across origins, errors included', async () => {
    const answers = await Promise.all([
      shop.graphql('{ __typename }'),
      shop.graphql('{ nothing }'),
      shop.graphql('{ __typename }', {}, { token: 'x' }),
      shop.rest('PUT', '/graphql'),
    ]);
    expect(answers.map(({ headers }) => headers.get('Access-Control-Allow-Origin'))).toEqual([
      '*',
      '*',
      '*',
      '*',
    ]);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=utf-16',
    '',
  ])('a body of the content type "%s" is 415', async (type) => {
    const answer = await shop.rest('POST', '/graphql', {
      body: '{"query":"{ __typename }"}',
      headers: { 'Content-Type': type },
    });
    expect(answer.status).toBe(415);
  });

  test.each([
    '{',
    '{"query":"{ __typename }"',
    'null',
    '"{ __typename }"',
    '{}',
    '{"query":1}',
    '',
  ])('the body %p is 400', async (body) => {
    const answer = await shop.rest('POST', '/graphql', {
      body,
      headers: { 'Content-Type': 'application/json' },
    });
    expect(answer.status).toBe(400);
    expect(answer.text).not.toMatch(/\bat |\.[jt]s\b/);
  });

  test('a body that is too large is 413', async () => {
    const answer = await shop.graphql(`{ __typename } #${'x'.repeat(200_000)}`);
    expect(answer.status).toBe(413);
  });
});

interface ExtendedError {
  extensions: { code: string; fields?: { field: string; message: string }[] };
}

function codes({ body }: Answer): string[] {
  return (body.errors ?? []).map(({ extensions }: ExtendedError) => extensions.code);
}

function corsHeaders({ headers }: Answer): (string | null)[] {
  return ['Origin', 'Methods', 'Headers']
    .map((name) => headers.get(`Access-Control-Allow-${name}`))
    .concat(headers.get('Allow'));
}

function shopToken(username: string, lifetime?: number): string {
  return createAccessToken(shop.context(), { username }, lifetime);
}

/** The response while the table has another name. */
async function without(table: string, send: () => Promise<Answer>): Promise<Answer> {
  await shop.sql(`alter table "${table}" rename to "${table}_away"`);
  try {
    return await send();
  } finally {
    await shop.sql(`alter table "${table}_away" rename to "${table}"`);
  }
}

function expectMasked({ text }: Answer): void {
  const [id = 'no id'] = /[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}/.exec(text) ?? [];
  expect(
    shop.logged.filter((line) => line.includes(id) && line.includes('does not exist')),
  ).toHaveLength(1);
  expect(text).not.toMatch(/does not exist|relation|select|insert|stack|\bat |\.[jt]s\b|42P01/i);
}
