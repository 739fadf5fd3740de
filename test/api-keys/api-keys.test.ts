import { describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import { findExpired } from '../../src/features/auth/sessions/credential-expiry.service.ts';
import { features } from '../../src/features.ts';
import { globalId } from '../../src/api/node.ts';
import { newSecretKey } from '../../src/core/secret-key.ts';
import { SCOPES } from '../../src/core/scopes.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { openSession } from '../support/logins.ts';
import { recordStatements } from '../support/statements.ts';
import { PASSWORD, codeOf, useShop, type Answer, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const CREATE = `mutation ($input: ApiKeyInput!) {
  createApiKey(input: $input) { key apiKey { id name scopes createdAt expiresAt lastUsedAt } }
}`;
const REVOKE = 'mutation ($id: ID!) { revokeApiKey(id: $id) { id name } }';
const LIST = '{ me { apiKeys { totalCount nodes { id name lastUsedAt } } } }';
const DAY = 86_400_000;
const MINUTE = 60_000;

interface Made {
  key: string;
  apiKey: {
    id: string;
    name: string;
    scopes: string[];
    createdAt: string;
    expiresAt: string;
    lastUsedAt: string | null;
  };
}

describe('createApiKey', () => {
  test('it returns the key once, with its id; only its hash is stored', async () => {
    const as = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    const made = await create(as, { name: ' till 7 ', scopes: ['products:write'] });
    expect(made).toEqual({
      key: expect.stringMatching(/^sk_[\w-]{43}$/),
      apiKey: {
        id: expect.any(String),
        name: 'till 7',
        scopes: ['products:write'],
        createdAt: expect.any(String),
        expiresAt: expect.any(String),
        lastUsedAt: null,
      },
    });
    expect(
      new Date(made.apiKey.expiresAt).getTime() - new Date(made.apiKey.createdAt).getTime(),
    ).toBe(90 * DAY);
    const [{ row, length } = {}] = await shop.sql(
      'select api_key::text as row, octet_length(key_hash) as length from api_key',
    );
    expect([length, String(row).includes(made.key.slice(3))]).toEqual([32, false]);
  });

  test('K1 a thousand keys share only their prefix', async () => {
    const keys = new Set(Array.from({ length: 1_000 }, newSecretKey));
    expect([keys.size, new Set([...keys].map((key) => key.slice(0, 8))).size]).toEqual([
      1_000, 1_000,
    ]);
  });

  test('K2 a key gets only scopes that the user and the session or token have', async () => {
    const as = await shop.makeUser({ username: 'ada', scopes: ['products:write', 'blog:write'] });
    expect(codeOf(await tryCreate({ as }, { scopes: ['users:read'] }))).toBe('FORBIDDEN');
    const query =
      'mutation { login(username: "ada", password: "correct horse battery", scopes: ["blog:write"]) { sessionKey accessToken } }';
    const { sessionKey, accessToken } = (await shop.graphql(query)).body.data.login;
    for (const credentials of [{ sessionKey }, { token: accessToken }]) {
      expect(codeOf(await tryCreate(credentials, { scopes: ['products:write'] }))).toBe(
        'FORBIDDEN',
      );
      expect(codeOf(await tryCreate(credentials, { scopes: ['blog:write'] }))).toBeUndefined();
    }
    expect(await shop.sql('select scopes from api_key')).toEqual([
      { scopes: ['blog:write'] },
      { scopes: ['blog:write'] },
    ]);
  });

  test.each([
    ['no name', { name: ' ' }, 'name'],
    ['a name of 101 characters', { name: 'x'.repeat(101) }, 'name'],
    ['a name with a line break', { name: 'a\nb' }, 'name'],
    ['an unknown scope', { scopes: ['everything'] }, 'scopes.0'],
    ['an expiry in the past', { expiresAt: '2020-01-01T00:00:00Z' }, 'expiresAt'],
    [
      'an expiry more than 366 days away',
      { expiresAt: new Date(Date.now() + 367 * DAY).toISOString() },
      'expiresAt',
    ],
  ])('%s is rejected', async (_what, change, field) => {
    const answer = await tryCreate({ as: await shop.makeUser() }, change);
    expect(answer.body.errors[0].extensions).toMatchObject({
      code: 'BAD_USER_INPUT',
      fields: [{ field }],
    });
    expect(await shop.sql('select * from api_key')).toEqual([]);
  });

  test('the error for an unknown scope lists the known ones', async () => {
    const answer = await tryCreate({ as: await shop.makeUser() }, { scopes: ['everything'] });
    expect(answer.body.errors[0].message).toBe(`scopes.0: A scope is one of ${SCOPES.join(', ')}`);
  });

  test('no key is created if its session ends during the request', async () => {
    const user = await shop.makeUser();
    const { sid, key } = await openSession(shop, user);
    const caller = {
      pk: user.pk,
      username: user.username,
      sessionId: sid,
      scopes: new Set<never>(),
    };
    const ctx = Object.assign(shop.context(), { caller });
    const input = { name: 'till', scopes: [] };
    await apiKeys.create(ctx, input);
    await shop.rest('POST', '/session/logout', { json: { session_key: key } });
    await expect(apiKeys.create(ctx, input)).rejects.toMatchObject({ code: 'NOT_AUTHENTICATED' });
    expect(await shop.sql('select 1 from api_key')).toHaveLength(1);
  });

  test.each(['tomorrow', '2027-01-31', '2027-01-31T00:00:00', 1, '2027-02-30T00:00:00Z', ''])(
    '%j is not a DateTime',
    async (expiresAt) => {
      const answer = await tryCreate({ as: await shop.makeUser() }, { expiresAt });
      expect(answer.body.errors[0].extensions).toMatchObject({
        code: 'BAD_USER_INPUT',
        fields: [{ field: 'expiresAt' }],
      });
    },
  );

  test('a 51st key is a conflict, also with ten concurrent requests, until one is revoked or expires', async () => {
    const as = await shop.makeUser();
    for (let count = 0; count < 48; count++) await create(as);
    const answers = await Promise.all(Array.from({ length: 10 }, () => tryCreate({ as })));
    expect(answers.filter((answer) => codeOf(answer) === undefined)).toHaveLength(2);
    expect(codeOf(await tryCreate({ as }))).toBe('CONFLICT');
    shop.advanceClock(90 * DAY);
    expect(codeOf(await tryCreate({ as: await shop.makeUser() }))).toBeUndefined();
    expect(codeOf(await tryCreate({ token: shop.tokenOf(as) }))).toBeUndefined();
  });

  test('without credentials it is UNAUTHENTICATED', async () => {
    expect([codeOf(await tryCreate({})), codeOf(await shop.graphql(REVOKE, { id: 'x' }))]).toEqual([
      'UNAUTHENTICATED',
      'UNAUTHENTICATED',
    ]);
  });
});

describe('API-key authentication', () => {
  test('a key has the scopes that it and its owner hold, by GraphQL and REST', async () => {
    const as = await shop.makeUser({ username: 'ada', scopes: ['products:write', 'blog:write'] });
    const { key } = await create(as, { scopes: ['products:write'] });
    expect((await shop.rest('GET', '/users/me/', { token: key })).body).toMatchObject({
      username: 'ada',
    });
    expect((await addProduct(key)).status).toBe(201);
    const entry = await shop.graphql(
      'mutation { createBlogEntry(input: { title: "a", body: "b" }) { id } }',
      {},
      { token: key },
    );
    expect(codeOf(entry)).toBe('FORBIDDEN');
  });

  test('K2 a scope that its owner loses is lost at the next request', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const { key } = await create(as, { scopes: ['products:write'] });
    await accounts.changeScopes(shop.context(), as.username, { remove: ['products:write'] });
    expect((await addProduct(key)).status).toBe(403);
    await accounts.changeScopes(shop.context(), as.username, { add: ['products:write'] });
    expect((await addProduct(key)).status).toBe(201);
  });

  test.each<[string, (made: Made, owner: User) => Promise<string>]>([
    ['made up', async () => `sk_${newSecretKey()}`],
    ['cut', async ({ key }) => key.slice(0, -1)],
    ['too long', async ({ key }) => `${key}A`],
    [
      'changed in its last character',
      async ({ key }) => key.slice(0, -1) + (key.endsWith('A') ? 'B' : 'A'),
    ],
    ['without its prefix', async ({ key }) => key.slice(3)],
    ['with another prefix', async ({ key }) => `SK_${key.slice(3)}`],
    [
      'the hash of a key',
      async () =>
        `sk_${String((await shop.sql("select encode(key_hash, 'base64') as hash from api_key"))[0]?.['hash']).slice(0, 43)}`,
    ],
    ['the id of a key', async ({ apiKey }) => apiKey.id],
    [
      'revoked',
      async ({ key, apiKey }, as) => {
        await shop.graphql(REVOKE, { id: apiKey.id }, { as });
        return key;
      },
    ],
    [
      'expired',
      async ({ key }) => {
        shop.advanceClock(90 * DAY);
        return key;
      },
    ],
    [
      'expired and swept',
      async ({ key }) => {
        shop.advanceClock(90 * DAY);
        await sweep();
        return key;
      },
    ],
    [
      'of a deleted user',
      async ({ key }, { pk }) => {
        await shop.sql(`delete from "user" where pk = ${pk}`);
        return key;
      },
    ],
  ])(
    'K3 a key that is %s gets the 401 of any other token, by GraphQL and REST',
    async (_what, change) => {
      const owner = await shop.makeUser();
      const token = await change(await create(owner), owner);
      const rest = await shop.rest('GET', '/users/me/', { token });
      const graphql = await shop.graphql('{ me { username } }', {}, { token });
      expect([rest.status, rest.headers.get('WWW-Authenticate'), rest.text]).toEqual([
        401,
        'Bearer',
        '{"detail":"Could not validate credentials"}',
      ]);
      expect([graphql.status, graphql.body]).toEqual([
        401,
        {
          errors: [
            { message: 'Could not validate credentials', extensions: { code: 'UNAUTHENTICATED' } },
          ],
        },
      ]);
    },
  );

  test('K3 a key is accepted only as a bearer token', async () => {
    const { key } = await create(await shop.makeUser());
    const elsewhere: RequestOptions[] = [
      { sessionKey: key },
      { headers: { Authorization: key } },
      { headers: { Authorization: `Basic ${btoa(`${key}:`)}` } },
      { headers: { 'X-API-Key': key } },
      { headers: { Cookie: `key=${key}` } },
    ];
    for (const request of elsewhere)
      expect((await shop.rest('GET', '/users/me/', request)).status).toBe(401);
    expect((await shop.rest('GET', `/users/me/?access_token=${key}`)).status).toBe(401);
    expect(
      (
        await shop.graphql('mutation ($t: String!) { refresh(refreshToken: $t) { sessionKey } }', {
          t: key,
        })
      ).body.errors,
    ).toHaveLength(1);
    expect(
      (await shop.rest('GET', '/users/me/', { headers: { Authorization: `bearer  ${key}` } }))
        .status,
    ).toBe(200);
  });

  test('the key of a disabled owner is rejected like the owner, and valid again with the owner', async () => {
    const owner = await shop.makeUser();
    const { key } = await create(owner);
    await accounts.disable(shop.context(), owner.username);
    expect(await shop.rest('GET', '/users/me/', { token: key })).toMatchObject({
      status: 400,
      body: { detail: 'Inactive user' },
    });
    await accounts.enable(shop.context(), owner.username);
    expect((await shop.rest('GET', '/users/me/', { token: key })).status).toBe(200);
  });

  test.each([
    [
      'changePassword',
      `mutation { changePassword(current: "${PASSWORD}", new: "another password") { id } }`,
    ],
    ['logoutEverywhere', 'mutation { logoutEverywhere { ended } }'],
    ['endOtherSessions', 'mutation { endOtherSessions { ended } }'],
    ['endSession', 'mutation { endSession(id: "x") { ended } }'],
    ['createApiKey', 'mutation { createApiKey(input: { name: "more", scopes: [] }) { key } }'],
    ['revokeApiKey', 'mutation { revokeApiKey(id: "x") { id } }'],
  ])('K4 %s is FORBIDDEN by API key, and changes nothing', async (_name, query) => {
    const owner = await shop.makeUser();
    const { key } = await create(owner);
    const session = await openSession(shop, owner);
    const answer = await shop.graphql(query, {}, { token: key });
    expect(answer.body.errors).toMatchObject([
      { message: 'Not allowed with an API key', extensions: { code: 'FORBIDDEN' } },
    ]);
    expect((await shop.rest('GET', '/users/me/', { sessionKey: session.key })).status).toBe(200);
    expect((await shop.rest('GET', '/users/me/', { token: key })).status).toBe(200);
    expect(
      (
        await shop.rest('POST', '/token', {
          form: { username: owner.username, password: PASSWORD },
        })
      ).status,
    ).toBe(200);
  });

  test('K4 a key cannot list the sessions and keys of its owner, and has no session to end', async () => {
    const owner = await shop.makeUser();
    const { key, apiKey } = await create(owner);
    const session = await openSession(shop, owner);
    const ids = [apiKey.id, globalId('Session', session.sid)];
    const query =
      'query ($ids: [ID!]!) { me { sessions { totalCount } apiKeys { totalCount } } nodes(ids: $ids) { id } }';
    expect((await shop.graphql(query, { ids }, { token: key })).body.data).toEqual({
      me: { sessions: { totalCount: 0 }, apiKeys: { totalCount: 0 } },
      nodes: [null, null],
    });
    expect(codeOf(await shop.graphql('mutation { logout { ended } }', {}, { token: key }))).toBe(
      'UNAUTHENTICATED',
    );
    expect((await shop.rest('POST', '/api/v2/auth/login', { token: key })).status).toBe(401);
  });

  test('its REST calls are counted for its owner', async () => {
    const { key } = await create(await shop.makeUser({ username: 'ada' }));
    shop.calls.take();
    await shop.rest('GET', '/blog', { token: key, headers: { 'User-Agent': 'till/7' } });
    expect(shop.calls.take()).toMatchObject([
      { endpoint: 'GET /blog', client: 'till/7', subject: 'ada', calls: 1 },
    ]);
  });

  test('its use is recorded once a minute', async () => {
    const owner = await shop.makeUser();
    const { key } = await create(owner);
    const use = () => shop.rest('GET', '/users/me/', { token: key });
    const usedAt = async () =>
      String((await shop.sql('select last_used_at from api_key'))[0]?.['last_used_at']);
    await Promise.all([use(), use(), use(), use()]);
    const at = await usedAt();
    shop.advanceClock(MINUTE - 5_000);
    const { statements } = await recordStatements(use);
    expect([statements.filter((text) => /update/i.test(text)), await usedAt()]).toEqual([[], at]);
    shop.advanceClock(10_000);
    await use();
    expect(await usedAt()).not.toBe(at);
    expect(
      (await shop.graphql(LIST, {}, { as: owner })).body.data.me.apiKeys.nodes[0].lastUsedAt,
    ).toBe(new Date(await usedAt()).toISOString());
  });

  test('a session or a token needs no extra statement', async () => {
    const owner = await shop.makeUser();
    const { key, token } = await openSession(shop, owner);
    for (const credentials of [{ sessionKey: key }, { token }]) {
      await shop.rest('GET', '/users/me/', credentials);
      const { statements } = await recordStatements(() =>
        shop.rest('GET', '/users/me/', credentials),
      );
      expect(statements.filter((text) => /api_key/.test(text))).toEqual([]);
      expect(statements.filter((text) => /^select/i.test(text))).toHaveLength(1);
    }
  });
});

test('findExpired needs one statement for keys, sessions and users', async () => {
  const user = await shop.makeUser();
  const { sid } = await openSession(shop, user);
  for (const name of ['good', 'revoked'])
    await apiKeys.createFor(shop.context(), user, { name, scopes: [] });
  const keyIds = (await shop.sql('select key_id from api_key order by name')).map(
    ({ key_id: keyId }) => String(keyId),
  );
  const caller = { pk: user.pk, username: user.username, scopes: new Set<never>() };
  const [session, valid, revoked] = [
    { sessionId: sid },
    ...keyIds.map((apiKeyId) => ({ apiKeyId })),
  ].map((own) => ({ ...caller, ...own }));
  await apiKeys.revokeOf(shop.context(), user.pk, keyIds[1]);
  if (!session || !valid || !revoked) throw new Error('three callers');
  const expired = await recordStatements(() =>
    findExpired(shop.context(), [session, valid, revoked]),
  );
  expect([...expired.answer.keys()]).toEqual([revoked]);
  expect(expired.answer.get(revoked)).toMatchObject({
    code: 'NOT_AUTHENTICATED',
    reason: undefined,
  });
  expect(expired.statements).toHaveLength(1);
});

describe('the list, and revokeApiKey', () => {
  test("the caller's own valid keys, the latest first, in pages; none of another user, even with users:read", async () => {
    const [as, reader] = [
      await shop.makeUser({ username: 'ada' }),
      await shop.makeUser({ scopes: ['users:read'] }),
    ];
    for (const name of ['one', 'two', 'three']) {
      await create(as, { name });
      shop.advanceClock(1_000);
    }
    const query =
      'query ($after: String) { me { apiKeys(first: 2, after: $after) { totalCount pageInfo { hasNextPage endCursor } nodes { name } } } }';
    const first = (await shop.graphql(query, {}, { as })).body.data.me.apiKeys;
    const second = (await shop.graphql(query, { after: first.pageInfo.endCursor }, { as })).body
      .data.me.apiKeys;
    expect([first.totalCount, first.nodes, second.nodes]).toEqual([
      3,
      [{ name: 'three' }, { name: 'two' }],
      [{ name: 'one' }],
    ]);
    const others = await shop.graphql(
      '{ users { nodes { username apiKeys { totalCount nodes { id } } } } }',
      {},
      { as: reader },
    );
    for (const user of others.body.data.users.nodes)
      expect(user.apiKeys).toEqual({ totalCount: 0, nodes: [] });
  });

  test('K5 only its owner finds and revokes a key; others get NOT_FOUND', async () => {
    const [owner, other] = [await shop.makeUser(), await shop.makeUser({ scopes: ['users:read'] })];
    const { key, apiKey } = await create(owner);
    const seen = async (as: User) =>
      (await shop.graphql('query ($id: ID!) { node(id: $id) { id } }', { id: apiKey.id }, { as }))
        .body.data.node;
    expect([await seen(owner), await seen(other)]).toEqual([{ id: apiKey.id }, null]);
    const rejected = await shop.graphql(REVOKE, { id: apiKey.id }, { as: other });
    const never = await shop.graphql(
      REVOKE,
      { id: globalId('ApiKey', crypto.randomUUID()) },
      { as: other },
    );
    expect([codeOf(rejected), rejected.text]).toEqual(['NOT_FOUND', never.text]);
    expect((await shop.rest('GET', '/users/me/', { token: key })).status).toBe(200);
    const { body } = await shop.graphql(REVOKE, { id: apiKey.id }, { as: owner });
    expect(body.data.revokeApiKey).toEqual({ id: apiKey.id, name: 'till' });
  });

  test.each([
    '',
    'x',
    globalId('ApiKey', 'x'),
    globalId('Session', '00000000-0000-4000-8000-000000000000'),
    globalId('User', 1),
  ])('K5 %j is not the id of a key: NOT_FOUND', async (id) => {
    expect(codeOf(await shop.graphql(REVOKE, { id }, { as: await shop.makeUser() }))).toBe(
      'NOT_FOUND',
    );
  });

  test('K5 of five concurrent revocations of one key, one succeeds', async () => {
    const as = await shop.makeUser();
    const { apiKey } = await create(as);
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map(() => shop.graphql(REVOKE, { id: apiKey.id }, { as })),
    );
    expect(answers.map(codeOf).filter((code) => code === undefined)).toHaveLength(1);
  });
});

test('X2 a key is in no log and no other response, and redacted wherever it is written', async () => {
  const as = await shop.makeUser();
  const { key } = await create(as);
  const answers = [
    await shop.rest('GET', '/users/me/', { token: key }),
    await shop.graphql(LIST, {}, { as }),
    await shop.rest('POST', '/session/logout', { json: { session_key: key } }),
    await shop.rest('GET', `/users/me/?key=${key}`, { token: `${key}x` }),
  ];
  for (const { text } of answers) expect(text).not.toContain(key);
  for (const line of shop.logged) expect(line).not.toContain(key.slice(3));
  const made = shop.logged.find((line) => line.includes('"auth.api_key"'));
  const [{ print } = {}] = await shop.sql(
    "select left(encode(key_hash, 'hex'), 8) as print from api_key",
  );
  expect(JSON.parse(made ?? '')).toMatchObject({
    outcome: 'success',
    user: as.username,
    change: 'made',
    key: print,
  });
});

describe('endOtherSessions', () => {
  test('it ends all sessions of the caller except the current one', async () => {
    const user = await shop.makeUser();
    const [own, ...others] = [
      await openSession(shop, user),
      await openSession(shop, user),
      await openSession(shop, user),
    ];
    const bystander = await openSession(shop);
    const answer = await shop.graphql(
      'mutation { endOtherSessions { ended } me: logout { ended } }',
      {},
      { sessionKey: own.key },
    );
    expect(answer.body.data).toEqual({ endOtherSessions: { ended: 2 }, me: { ended: 1 } });
    for (const { key } of others)
      expect((await shop.rest('GET', '/users/me/', { sessionKey: key })).status).toBe(401);
    expect((await shop.rest('GET', '/users/me/', { sessionKey: bystander.key })).status).toBe(200);
  });

  test('without credentials it is UNAUTHENTICATED', async () => {
    expect(codeOf(await shop.graphql('mutation { endOtherSessions { ended } }'))).toBe(
      'UNAUTHENTICATED',
    );
  });
});

function tryCreate(credentials: RequestOptions, change: object = {}): Promise<Answer> {
  return shop.graphql(CREATE, { input: { name: 'till', scopes: [], ...change } }, credentials);
}

async function create(as: User, change: object = {}): Promise<Made> {
  const { body } = await tryCreate({ as }, change);
  expect(body.errors).toBeUndefined();
  return body.data.createApiKey;
}

function addProduct(token: string): Promise<Answer> {
  return shop.rest('POST', '/api/v1/shop/product/', {
    token,
    json: { name: 'Lamp', barcode: shop.newBarcode(), price: 1 },
  });
}

async function sweep(): Promise<void> {
  for (const feature of features) await feature.sweep?.(shop.context());
}
