import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { isObjectType } from 'graphql';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import { features } from '../../src/features.ts';
import { inTransaction, type Context } from '../../src/request/context.ts';
import { hashKey, newSecretKey } from '../../src/core/secret-key.ts';
import * as products from '../../src/features/products/product.service.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { openSession, type SessionCredentials } from '../support/logins.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { entriesAddedBy, lastChanges, trailOf } from '../support/trail.ts';

const MAIL = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'shop@shop.example' };
const shop = useShop({ REGISTRATION: 'on', PASSWORD_RESET: 'on', ...MAIL });

const CREATE = '/api/v1/shop/product/';
const NEXT = 'another good password';
const INK = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
const NO_KEY = 'it opens or ends its own session, which the log records';
const NO_ACTION = 'it only requests a mail';
const NO_SUBJECT = 'it is about neither accounts nor products';

let ada: User;
let own: SessionCredentials;
let apiKey: apiKeys.CreatedApiKey;
/** A token for a registration and for a password reset. */
let token: string;

beforeEach(async () => {
  ada = await shop.makeUser({ username: 'ada', scopes: ['products:write', 'blog:write'] });
  own = await openSession(shop, ada);
  apiKey = await apiKeys.createFor(shop.context(), ada, {
    name: 'till',
    scopes: ['products:write'],
  });
  await shop.makeProduct({ name: 'Lamp', barcode: '4006381333931', price: '24.50' });
  await shop.makeItem(ada, 'lantern');
  token = newSecretKey();
  await shop.sql(
    `insert into registration (email, token_hash, expires_at) values ('bea@shop.example', ${stored()})`,
  );
  await mailToken();
});

const stored = () => `'\\x${hashKey(token).toString('hex')}', now() + interval '1 hour'`;
const mailToken = () =>
  shop.sql(
    `insert into password_reset (user_pk, token_hash, expires_at) values (${ada.pk}, ${stored()})`,
  );

interface Write {
  send: () => Promise<Answer>;
  /** Its audit entries, or why it has none. */
  entries: readonly string[] | string;
}

const mutation = (
  fields: string,
  variables = {},
  request: RequestOptions = { sessionKey: own.key },
) => shop.graphql(`mutation { ${fields} }`, variables, request);

const MUTATIONS: Record<string, Write> = {
  createProduct: {
    send: () =>
      mutation('createProduct(input: { name: "Ink", barcode: "5901234123457", price: 1 }) { pk }'),
    entries: ['user:ada product.created product:Ink'],
  },
  createProducts: {
    send: () =>
      mutation(`createProducts(inputs: [
        { name: "Ink", barcode: "5901234123457", price: 1 }, { name: "None", barcode: "1", price: 1 }, { name: "Tray", barcode: "0012345678905", price: 2 },
        { name: "Taken", barcode: "4006381333931", price: 1 }
      ]) { error { code } }`),
    entries: ['user:ada product.created product:Ink', 'user:ada product.created product:Tray'],
  },
  updateProduct: {
    send: () => mutation('updateProduct(pk: 1, input: { price: 26 }) { pk }'),
    entries: ['user:ada product.changed product:Lamp'],
  },
  deleteProduct: {
    send: () => mutation('deleteProduct(pk: 1) { pk }'),
    entries: ['user:ada product.deleted product:Lamp'],
  },
  createApiKey: {
    send: () => mutation('createApiKey(input: { name: "stock", scopes: [] }) { key }'),
    entries: ['user:ada api_key.created api_key:stock'],
  },
  revokeApiKey: {
    send: () => mutation(`revokeApiKey(id: "${apiKey.apiKey.id}") { id }`),
    entries: ['user:ada api_key.revoked api_key:till'],
  },
  changePassword: {
    send: () => mutation(`changePassword(current: "${PASSWORD}", new: "${NEXT}") { id }`),
    entries: ['user:ada account.password_changed user:ada'],
  },
  confirmRegistration: {
    send: () =>
      mutation(
        `confirmRegistration(input: { token: "${token}", username: "bea", password: "${NEXT}" }) { id }`,
        {},
        {},
      ),
    entries: ['user:bea account.registered user:bea'],
  },
  resetPassword: {
    send: () => mutation(`resetPassword(token: "${token}", new: "${NEXT}") { id }`, {}, {}),
    entries: ['user:ada account.password_reset user:ada', 'user:ada api_key.revoked api_key:till'],
  },
  endSession: {
    send: async () => {
      const session = await openSession(shop, ada);
      const { body } = await shop.graphql(
        '{ me { sessions { nodes { id current } } } }',
        {},
        { sessionKey: session.key },
      );
      const other = body.data.me.sessions.nodes.find(
        ({ current }: { current: boolean }) => !current,
      );
      return mutation(`endSession(id: "${other.id}") { ended }`, {}, { sessionKey: session.key });
    },
    entries: ['user:ada account.sessions_ended user:ada'],
  },
  logoutEverywhere: {
    send: () => mutation('logoutEverywhere { ended }'),
    entries: ['user:ada account.sessions_ended user:ada'],
  },
  login: {
    send: () => mutation(`login(username: "ada", password: "${PASSWORD}") { tokenType }`, {}, {}),
    entries: NO_KEY,
  },
  refresh: {
    send: () => mutation(`refresh(refreshToken: "${own.refreshToken}") { tokenType }`, {}, {}),
    entries: NO_KEY,
  },
  logout: { send: () => mutation('logout { ended }'), entries: NO_KEY },
  register: {
    send: () => mutation('register(input: { email: "cy@shop.example" })', {}, {}),
    entries: NO_ACTION,
  },
  requestPasswordReset: {
    send: () => mutation('requestPasswordReset(user: "ada")', {}, {}),
    entries: NO_ACTION,
  },
  addItem: {
    send: () => mutation('addItem(itemId: "new") { id }'),
    entries: NO_SUBJECT,
  },
  removeItem: {
    send: () => mutation('removeItem(itemId: "lantern") { id }'),
    entries: NO_SUBJECT,
  },
  createBlogEntry: {
    send: () => mutation('createBlogEntry(input: { title: "a", body: "b" }) { id }'),
    entries: NO_SUBJECT,
  },
  updateBlogEntry: {
    send: async () =>
      mutation(
        `updateBlogEntry(id: "${(await shop.makeEntry(ada)).id}", input: { title: "new" }) { id }`,
      ),
    entries: NO_SUBJECT,
  },
  deleteBlogEntry: {
    send: async () => mutation(`deleteBlogEntry(id: "${(await shop.makeEntry(ada)).id}") { id }`),
    entries: NO_SUBJECT,
  },
};

const credentials = { username: 'ada', password: PASSWORD };
const ENDPOINTS: Record<string, Write> = {
  [`POST ${CREATE}`]: {
    send: () => shop.rest('POST', CREATE, { token: own.token, json: INK }),
    entries: ['user:ada product.created product:Ink'],
  },
  'POST /token': {
    send: () => shop.rest('POST', '/token', { form: credentials }),
    entries: NO_KEY,
  },
  'POST /login': {
    send: () => shop.rest('POST', '/login', { form: credentials }),
    entries: NO_KEY,
  },
  'POST /session/login': {
    send: () => shop.rest('POST', '/session/login', { json: credentials }),
    entries: NO_KEY,
  },
  'POST /session/logout': {
    send: () => shop.rest('POST', '/session/logout', { json: { session_key: own.key } }),
    entries: NO_KEY,
  },
  'POST /api/v2/auth/login': {
    send: () => shop.rest('POST', '/api/v2/auth/login', { json: credentials }),
    entries: NO_KEY,
  },
};

describe('each write records its entries, and no others', () => {
  test('every mutation of the schema is listed here', async () => {
    const type = (await makeSchema()).getType('Mutation');
    const fields = isObjectType(type) ? Object.keys(type.getFields()) : [];
    expect(Object.keys(MUTATIONS).toSorted()).toEqual(fields.toSorted());
  });

  test('every REST endpoint except GET is listed here', () => {
    const rows = features
      .flatMap(({ routes }) => routes?.(shop.config) ?? [])
      .filter(({ method }) => method !== 'GET');
    expect(Object.keys(ENDPOINTS).toSorted()).toEqual(
      rows.map(({ method, path }) => `${method} ${path}`).toSorted(),
    );
  });

  test.each(Object.entries({ ...MUTATIONS, ...ENDPOINTS }))(
    '%s',
    async (_name, { send, entries }) => {
      const added = await entriesAddedBy(shop, async () => {
        const { status, body } = await send();
        expect([status < 300, body.errors]).toEqual([true, undefined]);
      });
      expect(added).toEqual(typeof entries === 'string' ? [] : entries);
    },
  );
});

describe('an entry', () => {
  const requestId = '0af7651916cd43dd8448eb211c80319c';
  const headers = { 'X-Request-Id': requestId };

  test('has the time, the address, the request and the subject', async () => {
    await shop.rest('POST', CREATE, { token: own.token, json: INK, headers });
    const [entry] = await shop.sql(`
      select now() - at < interval '1 minute' as is_new, network, request_id, actor_pk::int, api_key, subject_kind, subject_key, subject_name
      from audit_entry order by pk desc limit 1`);
    expect(entry).toEqual({
      is_new: true,
      network: '127.0.0.1',
      request_id: requestId,
      actor_pk: ada.pk,
      api_key: null,
      subject_kind: 'product',
      subject_key: '2',
      subject_name: 'Ink',
    });
  });

  test('has the changed fields of a product, before and after, whatever the form of a price', async () => {
    await shop.rest('POST', CREATE, { token: own.token, json: INK });
    expect(await lastChanges(shop)).toEqual(
      Object.entries({ name: 'Ink', barcode: INK.barcode, price: '12.50' }).map(
        ([field, after]) => ({ field, before: null, after }),
      ),
    );
    await mutation('updateProduct(pk: 2, input: { name: "Ink", price: 13 }) { pk }');
    expect(await lastChanges(shop)).toEqual([{ field: 'price', before: '12.50', after: '13.00' }]);
    await shop.sql('update product set price = 13 where pk = 2');
    expect(
      await entriesAddedBy(shop, () =>
        mutation('updateProduct(pk: 2, input: { price: "13.0" }) { pk }'),
      ),
    ).toEqual([]);
    await mutation('deleteProduct(pk: 2) { pk }');
    expect(await lastChanges(shop)).toEqual(
      Object.entries({ name: 'Ink', barcode: INK.barcode, price: '13.00' }).map(
        ([field, before]) => ({ field, before, after: null }),
      ),
    );
  });

  test('has the scopes before and after', async () => {
    await accounts.changeScopes(shop.context(), 'ada', {
      add: ['audit:read'],
      remove: ['blog:write'],
    });
    expect(await lastChanges(shop)).toEqual([
      { field: 'scopes', before: 'products:write blog:write', after: 'products:write audit:read' },
    ]);
  });

  test.each<[string, () => RequestOptions, string]>([
    ['a user in a session, by its key', () => ({ sessionKey: own.key }), 'user:ada'],
    ['a user in a session, by a token', () => ({ token: own.token }), 'user:ada'],
    ['a user by a token without a session', () => ({ as: ada }), 'user:ada'],
    ['an API key', () => ({ token: apiKey.key }), 'api_key:ada'],
  ])('names the actor: %s, by GraphQL and REST', async (_who, request, actor) => {
    const { name, ...rest } = INK;
    const added = await entriesAddedBy(shop, async () => {
      await shop.rest('POST', CREATE, { ...request(), json: { name, ...rest } });
      await mutation('deleteProduct(pk: 1) { pk }', {}, request());
    });
    expect(added).toEqual([
      `${actor} product.created product:Ink`,
      `${actor} product.deleted product:Lamp`,
    ]);
    const [{ api_key: keyId } = {}] = await shop.sql(
      'select api_key from audit_entry order by pk desc limit 1',
    );
    expect(keyId).toBe(actor.startsWith('api_key') ? apiKey.apiKey.keyId : null);
  });

  test('of an operator has a name and no request', async () => {
    await accounts.setDisabled({ ...shop.context(), operator: 'olga' }, 'ada', true);
    const [entry] = await shop.sql(
      'select actor_kind, actor_name, actor_pk, request_id from audit_entry order by pk desc limit 1',
    );
    expect(entry).toEqual({
      actor_kind: 'operator',
      actor_name: 'olga',
      actor_pk: null,
      request_id: null,
    });
  });

  test('outlives its actor and its subject', async () => {
    const before = await trailOf(shop);
    await shop.sql('delete from "user"');
    expect([before.length, await trailOf(shop)]).toEqual([1, before]);
  });
});

describe('a write without effect records no entry', () => {
  const none: [string, () => Promise<unknown>][] = [
    [
      'a product that is as it was',
      () => mutation('updateProduct(pk: 1, input: { name: "Lamp", price: 24.5 }) { pk }'),
    ],
    [
      'a barcode that is taken',
      () => shop.rest('POST', CREATE, { as: ada, json: { ...INK, barcode: '4006381333931' } }),
    ],
    ['a barcode that is taken, in a change', () => takenByChange()],
    ['rejected input', () => shop.rest('POST', CREATE, { as: ada, json: { ...INK, price: -1 } })],
    [
      'a rejected batch',
      () =>
        mutation(
          'createProducts(inputs: [{ name: "", barcode: "1", price: 1 }]) { error { code } }',
        ),
    ],
    ['an empty batch', () => mutation('createProducts(inputs: []) { error { code } }')],
    ['an unknown product', () => mutation('deleteProduct(pk: 9) { pk }')],
    ['a caller without credentials', () => shop.rest('POST', CREATE, { json: INK })],
    [
      'a caller without the scope',
      async () => shop.rest('POST', CREATE, { as: await shop.makeUser(), json: INK }),
    ],
    [
      'a wrong password',
      () => mutation(`changePassword(current: "${NEXT}", new: "${NEXT}") { id }`),
    ],
    [
      'an invalid token of a mail',
      () => mutation(`resetPassword(token: "${newSecretKey()}", new: "${NEXT}") { id }`, {}, {}),
    ],
    [
      'a taken name',
      () =>
        mutation(
          `confirmRegistration(input: { token: "${token}", username: "ada", password: "${NEXT}" }) { id }`,
        ),
    ],
    [
      'an account with a taken name',
      () => accounts.create(shop.context(), credentials).catch(() => undefined),
    ],
    ['the API key of another user', async () => revokedBy(await shop.makeUser())],
    [
      'a key with more scopes than its owner',
      () => mutation('createApiKey(input: { name: "x", scopes: ["users:read"] }) { key }'),
    ],
    [
      'no sessions to end',
      async () => mutation('logoutEverywhere { ended }', {}, { as: await shop.makeUser() }),
    ],
    [
      'scopes that the user already has',
      () => accounts.changeScopes(shop.context(), 'ada', { add: ['blog:write'] }),
    ],
    [
      'scopes that the user does not have',
      () => accounts.changeScopes(shop.context(), 'ada', { remove: ['users:read'] }),
    ],
    ['an already enabled user', () => accounts.setDisabled(shop.context(), 'ada', false)],
    ['a rolled back transaction', () => rollBack()],
  ];

  test.each(none)('%s', async (_what, work) => {
    expect(await entriesAddedBy(shop, work)).toEqual([]);
  });

  async function takenByChange(): Promise<void> {
    await shop.makeProduct({ barcode: INK.barcode });
    await mutation(`updateProduct(pk: 2, input: { name: "New", barcode: "4006381333931" }) { pk }`);
  }

  function revokedBy(as: User): Promise<Answer> {
    return mutation(`revokeApiKey(id: "${apiKey.apiKey.id}") { id }`, {}, { as });
  }

  async function rollBack(): Promise<void> {
    const ctx: Context = {
      ...shop.context(),
      caller: { pk: ada.pk, username: 'ada', scopes: new Set(ada.scopes) },
    };
    const work = inTransaction(ctx, async (tx) => {
      await products.create(tx, { ...INK, price: '12.50' });
      await products.remove(tx, '1');
      await accounts.setDisabled(tx, 'ada', true);
      throw new Error('rolled back');
    });
    await expect(work).rejects.toThrow('rolled back');
  }
});

describe('an action done once records one entry', () => {
  const created = 'user:ada product.created product:Ink';
  const withKey = () =>
    shop.rest('POST', CREATE, {
      token: own.token,
      json: INK,
      headers: { 'Idempotency-Key': 'once' },
    });
  const atOnce = (work: () => Promise<unknown>) => Promise.all([1, 2, 3].map(work));

  test.each<[string, () => Promise<unknown>, string]>([
    ['a request repeated with its idempotency key', () => withKey().then(withKey), created],
    ['a request sent concurrently with one idempotency key', () => atOnce(withKey), created],
    [
      'a barcode created concurrently',
      () => atOnce(() => shop.rest('POST', CREATE, { as: ada, json: INK })),
      created,
    ],
    [
      'a product deleted concurrently',
      () => atOnce(() => mutation('deleteProduct(pk: 1) { pk }')),
      'user:ada product.deleted product:Lamp',
    ],
    [
      'a key revoked concurrently',
      () => atOnce(() => mutation(`revokeApiKey(id: "${apiKey.apiKey.id}") { id }`)),
      'user:ada api_key.revoked api_key:till',
    ],
    [
      'a user disabled twice',
      async () => {
        for (let time = 0; time < 2; time++)
          await accounts.setDisabled(shop.context(), 'ada', true);
      },
      'anonymous account.disabled user:ada',
    ],
  ])('%s', async (_what, work, entry) => {
    expect(await entriesAddedBy(shop, work)).toEqual([entry]);
  });

  test('scopes granted concurrently: each entry has the scopes before it', async () => {
    await Promise.all(
      (['users:read', 'audit:read'] as const).map((scope) =>
        accounts.changeScopes(shop.context(), 'ada', { add: [scope] }),
      ),
    );
    const rows = await shop.sql(
      `select changes -> 0 as change from audit_entry where action = 'account.scopes_changed' order by pk`,
    );
    const [first, second] = rows.map(({ change }) => change as { before: string; after: string });
    expect([first?.before, second?.before]).toEqual(['products:write blog:write', first?.after]);
    expect(second?.after.split(' ')).toHaveLength(4);
  });
});

test('U3 no password, hash, key or token is in the trail in any form', async () => {
  const made = (
    await mutation('createApiKey(input: { name: "stock", scopes: [] }) { key apiKey { id } }')
  ).body.data.createApiKey;
  const hash = async () =>
    (await shop.sql('select hashed_password from "user" where hashed_password is not null')).map(
      (row) => row['hashed_password'],
    );
  const secrets: unknown[] = [
    PASSWORD,
    NEXT,
    token,
    made.key,
    apiKey.key,
    own.key,
    own.token,
    own.refreshToken,
    ...(await hash()),
  ];
  await mutation(`revokeApiKey(id: "${made.apiKey.id}") { id }`);
  await mutation(`changePassword(current: "${PASSWORD}", new: "${NEXT}") { id }`);
  secrets.push(...(await hash()));
  await mutation(
    `confirmRegistration(input: { token: "${token}", username: "bea", password: "${NEXT}" }) { id }`,
    {},
    {},
  );
  // The new password has invalidated the earlier token.
  await mailToken();
  await mutation(`resetPassword(token: "${token}", new: "${NEXT} too") { id }`, {}, {});
  await accounts.create(shop.context(), {
    username: 'cy',
    password: NEXT,
    email: 'cy@shop.example',
  });
  await accounts.setPassword(shop.context(), 'cy', `${NEXT} three`);
  secrets.push(
    ...(await hash()),
    ...[token, made.key, apiKey.key, own.key].map((key) => hashKey(String(key)).toString('hex')),
  );
  const rows = await shop.sql('select audit_entry::text as row from audit_entry');
  const text = rows.map(({ row }) => String(row)).join('\n');
  expect(rows.length).toBeGreaterThan(7);
  expect(secrets.filter((secret) => text.includes(String(secret)))).toEqual([]);
  expect(text).not.toMatch(/\$2[aby]\$|sk_|eyJ|@shop\.example/);
});

describe('with ANONYMOUS_SCOPES', () => {
  const open = new Shop({ ANONYMOUS_SCOPES: 'products:write' });

  test('a caller without credentials is recorded as such', async () => {
    await open.start();
    try {
      await open.rest('POST', CREATE, { json: INK });
      expect((await trailOf(open)).at(-1)).toBe('anonymous product.created product:Ink');
    } finally {
      await open.stop();
    }
  });
});
