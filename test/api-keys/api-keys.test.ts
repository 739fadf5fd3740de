import { describe, expect, test } from '../support/jest.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import { features } from '../../src/features.ts';
import { globalId } from '../../src/api/node.ts';
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
    ['an expiry without a time', { expiresAt: '2027-01-31' }, 'expiresAt'],
    ['an expiry on no day', { expiresAt: '2027-02-30T00:00:00Z' }, 'expiresAt'],
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
});

describe('API-key authentication', () => {
  test('K2 a scope that its owner loses is lost at the next request', async () => {
    const as = await shop.makeUser({ scopes: ['products:write'] });
    const { key } = await create(as, { scopes: ['products:write'] });
    await accounts.changeScopes(shop.context(), as.username, { remove: ['products:write'] });
    expect((await addProduct(key)).status).toBe(403);
    await accounts.changeScopes(shop.context(), as.username, { add: ['products:write'] });
    expect((await addProduct(key)).status).toBe(201);
  });

  test.each<[string, (made: Made) => Promise<unknown>]>([
    ['expired and swept', () => sweep()],
    ['the id of a key', async (made) => Object.assign(made, { key: made.apiKey.id })],
    [
      'the hash of a key',
      async (made) => {
        const [row] = await shop.sql("select encode(key_hash, 'base64') as hash from api_key");
        Object.assign(made, { key: `sk_${String(row?.['hash']).slice(0, 43)}` });
      },
    ],
  ])('K3 a key that is %s is rejected', async (_what, change) => {
    const made = await create(await shop.makeUser());
    shop.advanceClock(90 * DAY);
    await change(made);
    expect((await shop.rest('GET', '/users/me/', { token: made.key })).status).toBe(401);
  });

  test.each([
    [
      'changePassword',
      `mutation { changePassword(current: "${PASSWORD}", new: "another password") { id } }`,
    ],
    ['logoutEverywhere', 'mutation { logoutEverywhere { ended } }'],
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

  test('its use is recorded once a minute', async () => {
    const owner = await shop.makeUser();
    const { key } = await create(owner);
    const use = () => shop.rest('GET', '/users/me/', { token: key });
    const usedAt = async () =>
      String((await shop.sql('select to_json(last_used_at) as at from api_key'))[0]?.['at']);
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
