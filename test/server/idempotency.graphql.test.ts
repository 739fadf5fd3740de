import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import {
  isInputObjectType,
  isObjectType,
  getNamedType,
  type GraphQLInputType,
  type GraphQLOutputType,
} from 'graphql';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import * as idempotency from '../../src/features/idempotency/idempotency.service.ts';
import { IGNORES_IDEMPOTENCY_KEY } from '../../src/api/ignores-idempotency-key.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import {
  codeOf,
  PASSWORD,
  Shop,
  useShop,
  type Answer,
  type RequestOptions,
} from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

const shop = useShop();

const CREATE =
  'mutation ($input: ProductInput!) { createProduct(input: $input) { price name pk barcode } }';
const ADD = 'mutation ($itemId: String!) { addItem(itemId: $itemId) { itemId } }';
const LOGIN =
  'mutation ($username: String!, $password: String!) { login(username: $username, password: $password) { accessToken sessionKey } }';
const TRAY = { name: 'Walnut tray', barcode: '4006381333931', price: 12.5 };
const BOWL = { name: 'Oak bowl', barcode: '5901234123457', price: 7 };
const REUSED = {
  errors: [
    {
      message: 'The key was used for another request',
      locations: [{ line: 1, column: expect.any(Number) }],
      path: [expect.any(String)],
      extensions: {
        code: 'BAD_USER_INPUT',
        fields: [{ field: 'idempotency-key', message: 'The key was used for another request' }],
      },
    },
  ],
  data: null,
};
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

describe('Idempotency-Key over GraphQL: the same request', () => {
  test.each([
    ['left', 'select 1', ['Walnut tray']],
    ['changed', `update product set name = 'Renamed', price = 1`, ['Renamed']],
    ['deleted', 'delete from product', []],
  ])(
    'it answers the same bytes as the first time, and writes nothing, where the product was %s',
    async (_what, statement, left) => {
      const as = await writer();
      const first = await create(TRAY, 'k', { as });
      expect(first.body).toEqual({ data: { createProduct: { ...TRAY, pk: '1' } } });
      await shop.sql(statement);
      const again = await create(TRAY, 'k', { as });
      expect([again.status, again.text]).toEqual([200, first.text]);
      expect(await names()).toEqual(left);
    },
  );

  test('everything below the mutation is read in its transaction', async () => {
    const as = await shop.makeUser({ scopes: ['blog:write'] });
    await shop.makeItem(as, 'lamp');
    await shop.makeEntry(as);
    const query = `mutation ($itemId: String!) { addItem(itemId: $itemId) { owner {
      username blog { totalCount nodes { title creator { email } } } items(first: 5) { totalCount nodes { itemId owner { username } } }
      sessions { totalCount } apiKeys { totalCount } } } }`;
    const first = await send(query, { itemId: 'chair' }, 'k', { as });
    expect(first.body.errors).toBeUndefined();
    expect(first.body.data.addItem.owner).toMatchObject({
      blog: { totalCount: 1, nodes: [{ creator: { email: as.email } }] },
      items: { totalCount: 2, nodes: [{ itemId: 'lamp' }, { itemId: 'chair' }] },
      sessions: { totalCount: 0 },
    });
    expect((await send(query, { itemId: 'chair' }, 'k', { as })).text).toBe(first.text);
  });
});

describe('Idempotency-Key over GraphQL: another request under the same key', () => {
  test.each<[string, (as: User) => Promise<Answer>]>([
    ['other variables', (as) => create({ ...TRAY, price: 12.51 }, 'k', { as })],
    ['another mutation', (as) => send(ADD, { itemId: 'lamp' }, 'k', { as })],
  ])(
    '%s: BAD_USER_INPUT, nothing is written, and the first request still answers as the first time',
    async (_what, other) => {
      const as = await writer();
      const first = await create(TRAY, 'k', { as });
      const rejected = await other(as);
      expect([rejected.status, rejected.body]).toEqual([200, REUSED]);
      expect([await names(), await names('select item_id as name from item')]).toEqual([
        ['Walnut tray'],
        [],
      ]);
      expect((await create(TRAY, 'k', { as })).text).toBe(first.text);
    },
  );

  test('a key of REST is rejected on GraphQL, and one of GraphQL on REST, and nothing is written', async () => {
    const as = await writer();
    const rest = (json: object, key: string) =>
      shop.rest('POST', '/api/v1/shop/product/', { as, json, ...keyed(key) });
    const [byRest, byGraphql] = [await rest(TRAY, 'rest'), await create(BOWL, 'graphql', { as })];
    expect((await create(TRAY, 'rest', { as })).body).toEqual(REUSED);
    const rejected = await rest(BOWL, 'graphql');
    expect([rejected.status, rejected.body.detail[0].type]).toEqual([
      422,
      'idempotency_key_reused',
    ]);
    expect([(await rest(TRAY, 'rest')).text, (await create(BOWL, 'graphql', { as })).text]).toEqual(
      [byRest.text, byGraphql.text],
    );
    expect(await names()).toEqual(['Walnut tray', 'Oak bowl']);
  });
});

describe('Idempotency-Key over GraphQL: callers', () => {
  test('without credentials it is rejected without a statement', async () => {
    const { answer, statements } = await recordStatements(() => create(TRAY, 'k'));
    expect([codeOf(answer), statements]).toEqual(['UNAUTHENTICATED', []]);
  });

  test('a caller that has lost the scope does not get the response', async () => {
    const as = await writer();
    await create(TRAY, 'k', { as });
    await shop.sql(`update "user" set scopes = '{}'`);
    expect((await create(TRAY, 'k', { as })).body).toEqual(REUSED);
  });

  test('nor do credentials of the same user with fewer rights: a narrowed token, or an API key', async () => {
    const as = await shop.makeUser({ username: 'ada', scopes: ['users:read'] });
    const first = await send(ADD, { itemId: 'lamp' }, 'k', { as });
    const token = createAccessToken(
      shop.context(),
      { username: 'ada', scopes: ['users:read'] },
      60,
    );
    const made = await send(
      'mutation { createApiKey(input: { name: "till", scopes: ["users:read"] }) { key } }',
      {},
      undefined,
      { as },
    );
    for (const narrowed of [token, made.body.data.createApiKey.key as string]) {
      expect((await send(ADD, { itemId: 'lamp' }, 'k', { token: narrowed })).body).toEqual(REUSED);
    }
    expect((await send(ADD, { itemId: 'lamp' }, 'k', { as })).text).toBe(first.text);
  });
});

describe('Idempotency-Key over GraphQL: at once', () => {
  const [one, other] = [new Shop({ DATABASE_POOL_MAX: '2' }), new Shop({ DATABASE_POOL_MAX: '2' })];
  beforeAll(async () => void (await Promise.all([one.start(), other.start()])));
  afterAll(async () => void (await Promise.all([one.stop(), other.stop()])));

  test('of 20 with the same request at two instances, one writes and all answer the same', async () => {
    const as = await writer();
    const createAt = (index: number) =>
      (index % 2 ? one : other).graphql(CREATE, { input: TRAY }, { as, ...keyed('k') });
    const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => createAt(index)));
    expect(answers[0]?.body.data.createProduct.name).toBe('Walnut tray');
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await names()).toEqual(['Walnut tray']);
  });
});

describe('Idempotency-Key over GraphQL: time', () => {
  test('a key is valid for a day', async () => {
    const as = await writer();
    const first = await create(TRAY, 'k', { as });
    shop.advanceClock(DAY - MINUTE);
    expect((await create(TRAY, 'k', { as })).text).toBe(first.text);
    shop.advanceClock(MINUTE);
    expect(codeOf(await create(TRAY, 'k', { as }))).toBe('CONFLICT');
    expect((await create(BOWL, 'k', { as })).body.data.createProduct.name).toBe('Oak bowl');
  });

  test('the sweep deletes keys that are older than a day', async () => {
    const as = await writer();
    await create(TRAY, 'old', { as });
    shop.advanceClock(DAY - MINUTE);
    await create(BOWL, 'new', { as });
    shop.advanceClock(MINUTE);
    expect(await idempotency.sweep(shop.context())).toBe(1);
    expect(await names('select key as name from idempotency_key')).toEqual(['new']);
  });

  test('the sweep deletes more keys than a statement may', async () => {
    await shop.sql(
      `insert into idempotency_key (caller, key, fingerprint, created_at) select 'user:1', n, '', 'epoch' from generate_series(1, 5001) as n`,
    );
    expect(await idempotency.sweep(shop.context())).toBe(5_001);
  });
});

describe('Idempotency-Key over GraphQL: failures', () => {
  test.each<[string, string, Record<string, unknown>, string]>([
    ['the mutation fails', CREATE, { input: { ...BOWL, barcode: TRAY.barcode } }, 'CONFLICT'],
    [
      'it costs too much',
      `mutation { addItem(itemId: "a") { owner { items(first: 100) { nodes { owner { items(first: 100) { nodes { id } } } } } } } }`,
      {},
      'QUERY_TOO_COMPLEX',
    ],
  ])(
    'where %s, the response is that to a request without a key, and the key stays free',
    async (_why, query, variables, code) => {
      const as = await writer();
      await create(TRAY, undefined, { as });
      const rejected = await send(query, variables, 'k', { as });
      const plain = await send(query, variables, undefined, { as });
      expect(codeOf(rejected)).toBe(code);
      expect([rejected.status, rejected.text]).toEqual([plain.status, plain.text]);
      expect((await create(BOWL, 'k', { as })).body.errors).toBeUndefined();
    },
  );

  test('where a field below the mutation fails, nothing is written, and the key stays free', async () => {
    const as = await writer();
    const query =
      'mutation ($after: String) { addItem(itemId: "lamp") { itemId owner { items(after: $after) { nodes { itemId } } } } }';
    const rejected = await send(query, { after: 'wrong' }, 'k', { as });
    expect(rejected.body).toMatchObject({
      errors: [{ path: ['addItem', 'owner', 'items'] }],
      data: null,
    });
    expect([await stored(), await names('select item_id as name from item')]).toEqual([0, []]);
    expect((await send(query, {}, 'k', { as })).body.data.addItem.itemId).toBe('lamp');
  });

  test('where the response cannot be stored, nothing is written, and the key stays free', async () => {
    const as = await writer();
    await shop.sql('alter table idempotency_key add constraint no_answer check (answer is null)');
    try {
      expect((await create(TRAY, 'k', { as })).body).toMatchObject({
        errors: [{ path: ['createProduct'], extensions: { code: 'INTERNAL_SERVER_ERROR' } }],
        data: null,
      });
    } finally {
      await shop.sql('alter table idempotency_key drop constraint no_answer');
    }
    expect([await stored(), await names()]).toEqual([0, []]);
    expect((await create(TRAY, 'k', { as })).body.data.createProduct.name).toBe('Walnut tray');
  });
});

describe('Idempotency-Key over GraphQL: the mutations that honour it', () => {
  /** Each mutation that can be sent twice with the same credentials. */
  const honouring: Record<string, (as: User) => Promise<string>> = {
    addItem: async () => 'addItem(itemId: "lamp") { id itemId createdAt }',
    createBlogEntry: async () =>
      'createBlogEntry(input: { title: "a", body: "b" }) { id createdAt creator { email } }',
    createProduct: async () =>
      `createProduct(input: { name: "a", barcode: "${TRAY.barcode}", price: "1.50" }) { id pk price }`,
    createProducts: async () =>
      `createProducts(inputs: [{ name: "a", barcode: "${TRAY.barcode}", price: 1 }, { name: "", barcode: "1", price: 1 }]) { product { pk } error { code } }`,
    deleteBlogEntry: async (as) =>
      `deleteBlogEntry(id: "${(await shop.makeEntry(as)).id}") { id title }`,
    deleteProduct: async () => `deleteProduct(pk: ${(await shop.makeProduct()).pk}) { id name }`,
    endSession: async (as) => {
      const { accessToken } = await signIn(as);
      const { body } = await shop.graphql(
        '{ me { sessions { nodes { id current } } } }',
        {},
        { token: accessToken },
      );
      const { id } =
        (body.data.me.sessions.nodes as { id: string; current: boolean }[]).find(
          ({ current }) => current,
        ) ?? {};
      return `endSession(id: "${id}") { ended }`;
    },
    removeItem: async (as) =>
      `removeItem(itemId: "${(await shop.makeItem(as)).itemId}") { id itemId }`,
    revokeApiKey: async (as) => {
      const { body } = await shop.graphql(
        'mutation { createApiKey(input: { name: "till", scopes: [] }) { apiKey { id } } }',
        {},
        { as },
      );
      return `revokeApiKey(id: "${body.data.createApiKey.apiKey.id}") { id name }`;
    },
    updateBlogEntry: async (as) =>
      `updateBlogEntry(id: "${(await shop.makeEntry(as)).id}", input: { title: "c" }) { id title updatedAt }`,
    updateProduct: async () =>
      `updateProduct(pk: ${(await shop.makeProduct()).pk}, input: { name: "c" }) { id name updatedAt }`,
  };

  test.each(Object.entries(honouring))('%s answers as the first time', async (_name, mutation) => {
    const as = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const query = `mutation { ${await mutation(as)} }`;
    const first = await send(query, {}, 'k', { as });
    expect(first.body.errors).toBeUndefined();
    shop.advanceClock(1);
    expect((await send(query, {}, 'k', { as })).text).toBe(first.text);
  });

  test('logoutEverywhere ends the credentials that a second request would need', async () => {
    const { accessToken: token } = await signIn(await shop.makeUser());
    const logoutEverywhere = () =>
      send('mutation { logoutEverywhere { ended } }', {}, 'k', { token });
    expect((await logoutEverywhere()).body).toEqual({ data: { logoutEverywhere: { ended: 1 } } });
    expect((await logoutEverywhere()).status).toBe(401);
  });

  test('there is no other mutation', async () => {
    const all = [...Object.keys(honouring), 'logoutEverywhere', ...(await mutations()).ignoring];
    expect(all.toSorted()).toEqual((await mutations()).names.toSorted());
  });

  async function signIn({ username }: User): Promise<{ accessToken: string }> {
    const { body } = await shop.graphql(LOGIN, { username, password: PASSWORD });
    return body.data.login as { accessToken: string };
  }
});

describe('Idempotency-Key over GraphQL: the requests that may have one', () => {
  test.each([
    ['is empty', ''],
    ['has a space', 'a b'],
  ])(
    'one that %s is rejected with 400 and BAD_USER_INPUT, and nothing is written',
    async (_what, key) => {
      const { status, body } = await create(TRAY, key, { as: await writer() });
      expect([status, body]).toEqual([
        400,
        {
          errors: [
            {
              message: expect.stringContaining('idempotency-key: '),
              extensions: {
                code: 'BAD_USER_INPUT',
                fields: [{ field: 'idempotency-key', message: expect.any(String) }],
              },
            },
          ],
        },
      ]);
      expect(await names()).toEqual([]);
    },
  );

  test('one with two mutations is rejected with 400 and BAD_USER_INPUT, and nothing is written', async () => {
    const as = await shop.makeUser({ username: 'ada' });
    const query = 'mutation { a: addItem(itemId: "a") { id } b: addItem(itemId: "b") { id } }';
    const { status, body } = await send(query, {}, 'k', { as });
    expect([status, body.errors[0].extensions.code]).toEqual([400, 'BAD_USER_INPUT']);
    expect(await names('select item_id as name from item')).toEqual([]);
  });

  test('one with a login and a mutation, which would run as its user, is rejected with BAD_USER_INPUT', async () => {
    await shop.makeUser({ username: 'ada' });
    const query = `mutation { login(username: "ada", password: "${PASSWORD}") { accessToken } addItem(itemId: "a") { id } }`;
    const { status, body } = await send(query, {}, 'k');
    expect([status, body.errors[0].extensions.code]).toEqual([400, 'BAD_USER_INPUT']);
    expect(await names('select item_id as name from item')).toEqual([]);
  });

  test('a query ignores it, valid or not, by POST and by GET', async () => {
    const as = await writer();
    const query = '{ me { username } }';
    const posted = await send(query, {}, 'a b', { as });
    const got = await shop.rest('GET', `/graphql?query=${encodeURIComponent(query)}`, {
      as,
      ...keyed('a b'),
    });
    expect([posted.body.data, got.body.data, await stored()]).toEqual([
      { me: { username: as.username } },
      { me: { username: as.username } },
      0,
    ]);
  });

  test('all mutations that take or return a password, key or token, or request a mail, ignore it, and no others do', async () => {
    const { fields, ignoring } = await mutations();
    const secret = fields.filter(
      ({ args, type }) =>
        args.some(({ name, type: own }) => isSecret(name, own)) || returnsSecret(type),
    );
    expect(ignoring.toSorted()).toEqual(
      [...secret.map(({ name }) => name), 'register', 'requestPasswordReset'].toSorted(),
    );
  });
});

describe('Idempotency-Key over GraphQL: stored responses', () => {
  test('a response of more than 256 KB is QUERY_TOO_COMPLEX, and nothing is written', async () => {
    const as = await shop.makeUser({ scopes: ['blog:write'] });
    const { id } = await shop.makeEntry(as, { body: '\u20ac'.repeat(30_000) });
    const query =
      'mutation ($id: ID!, $body: String) { updateBlogEntry(id: $id, input: { body: $body }) { a: body b: body c: body } }';
    const answer = await send(query, { id, body: '\u20ac'.repeat(30_001) }, 'k', { as });
    expect(codeOf(answer)).toBe('QUERY_TOO_COMPLEX');
    expect([await stored(), await names('select length(body) as name from blog_entry')]).toEqual([
      0,
      [30_000],
    ]);
  });
});

async function mutations() {
  const fields = Object.values((await makeSchema()).getMutationType()?.getFields() ?? {});
  const ignoring = fields
    .filter(({ extensions }) => extensions[IGNORES_IDEMPOTENCY_KEY] === true)
    .map(({ name }) => name);
  return { fields, names: fields.map(({ name }) => name), ignoring };
}

const SECRET = /^(password|current|new|token|key|.*Token|.*Key)$/;

function isSecret(name: string, type: GraphQLInputType): boolean {
  const named = getNamedType(type);
  return (
    SECRET.test(name) ||
    (isInputObjectType(named) &&
      Object.values(named.getFields()).some((field) => isSecret(field.name, field.type)))
  );
}

// Checks the payload alone: objects below it are in the database, and queries read them, too.
function returnsSecret(type: GraphQLOutputType): boolean {
  const named = getNamedType(type);
  return isObjectType(named) && Object.keys(named.getFields()).some((name) => SECRET.test(name));
}

function create(
  input: object,
  key: string | undefined,
  request: RequestOptions = {},
): Promise<Answer> {
  return send(CREATE, { input }, key, request);
}

function send(
  query: string,
  variables: Record<string, unknown>,
  key: string | undefined,
  request: RequestOptions = {},
): Promise<Answer> {
  return shop.graphql(query, variables, { ...request, ...(key !== undefined && keyed(key)) });
}

function keyed(key: string): RequestOptions {
  return { headers: { 'Idempotency-Key': key } };
}

function writer(): Promise<User> {
  return shop.makeUser({ password: null, scopes: ['products:write'] });
}

async function names(statement = 'select name from product order by pk'): Promise<unknown[]> {
  return (await shop.sql(statement)).map(({ name }) => name);
}

async function stored(): Promise<number> {
  return (await shop.sql('select 1 from idempotency_key')).length;
}
