import { beforeEach, describe, expect, test } from '../support/jest.ts';
import { isObjectType } from 'graphql';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import * as accounts from '../../src/features/auth/user-administration.service.ts';
import { features } from '../../src/features.ts';
import { inTransaction, type Context } from '../../src/request/context.ts';
import { hashKey, newKey } from '../../src/core/secret-key.ts';
import * as products from '../../src/features/products/product.service.ts';
import { makeSchema } from '../../src/graphql/schema.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { openSession, type Opened } from '../support/logins.ts';
import { PASSWORD, Shop, useShop, type Answer, type RequestOptions } from '../support/shop.ts';
import { addedBy, lastChanges, trailOf } from '../support/trail.ts';

const MAIL = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'shop@shop.example' };
const shop = useShop({ REGISTRATION: 'on', PASSWORD_RESET: 'on', ...MAIL });

const CREATE = '/api/v1/shop/product/';
const NEXT = 'another good password';
const INK = { name: 'Ink', barcode: '5901234123457', price: 12.5 };
const NO_KEY = 'it opens or ends a session of its own: the log tells of that';
const NO_DEED = 'it only asks for a mail';
const NO_SUBJECT = 'it is about neither accounts nor products';

let ada: User;
let own: Opened;
let apiKey: apiKeys.Made;
/** Good for a registration, and for a new password. */
let token: string;

beforeEach(async () => {
  ada = await shop.makeUser({ username: 'ada', scopes: ['products:write', 'blog:write'] });
  own = await openSession(shop, ada);
  apiKey = await apiKeys.createFor(shop.context(), ada, { name: 'till', scopes: ['products:write'] });
  await shop.makeProduct({ name: 'Lamp', barcode: '4006381333931', price: '24.50' });
  await shop.makeItem(ada, 'lantern');
  token = newKey();
  await shop.sql(`insert into registration (email, token_hash, expires_at) values ('bea@shop.example', ${stored()})`);
  await mailToken();
});

const stored = () => `'\\x${hashKey(token).toString('hex')}', now() + interval '1 hour'`;
const mailToken = () => shop.sql(`insert into password_reset (user_pk, token_hash, expires_at) values (${ada.pk}, ${stored()})`);

/** A write, and the entries that it leaves; where those are none, why. */
interface Write {
  ask: () => Promise<Answer>;
  leaves: readonly string[];
  because?: string;
}

const mutation = (fields: string, variables = {}, request: RequestOptions = { sessionKey: own.key }) =>
  shop.graphql(`mutation { ${fields} }`, variables, request);

const MUTATIONS: Record<string, Write> = {
  createProduct: {
    ask: () => mutation('createProduct(input: { name: "Ink", barcode: "5901234123457", price: 1 }) { pk }'),
    leaves: ['user:ada product.created product:Ink'],
  },
  createProducts: {
    ask: () =>
      mutation(`createProducts(inputs: [
        { name: "Ink", barcode: "5901234123457", price: 1 }, { name: "None", barcode: "1", price: 1 }, { name: "Tray", barcode: "0012345678905", price: 2 },
        { name: "Taken", barcode: "4006381333931", price: 1 }
      ]) { error { code } }`),
    leaves: ['user:ada product.created product:Ink', 'user:ada product.created product:Tray'],
  },
  updateProduct: {
    ask: () => mutation('updateProduct(pk: 1, input: { price: 26 }) { pk }'),
    leaves: ['user:ada product.changed product:Lamp'],
  },
  deleteProduct: { ask: () => mutation('deleteProduct(pk: 1) { pk }'), leaves: ['user:ada product.deleted product:Lamp'] },
  createApiKey: {
    ask: () => mutation('createApiKey(input: { name: "stock", scopes: [] }) { key }'),
    leaves: ['user:ada api_key.created api_key:stock'],
  },
  revokeApiKey: {
    ask: () => mutation(`revokeApiKey(id: "${apiKey.apiKey.id}") { id }`),
    leaves: ['user:ada api_key.revoked api_key:till'],
  },
  changePassword: {
    ask: () => mutation(`changePassword(current: "${PASSWORD}", new: "${NEXT}") { id }`),
    leaves: ['user:ada account.password_changed user:ada'],
  },
  confirmRegistration: {
    ask: () => mutation(`confirmRegistration(input: { token: "${token}", username: "bea", password: "${NEXT}" }) { id }`, {}, {}),
    leaves: ['user:bea account.registered user:bea'],
  },
  resetPassword: {
    ask: () => mutation(`resetPassword(token: "${token}", new: "${NEXT}") { id }`, {}, {}),
    leaves: ['user:ada account.password_reset user:ada', 'user:ada api_key.revoked api_key:till'],
  },
  endSession: {
    ask: async () => {
      const session = await openSession(shop, ada);
      const { body } = await shop.graphql('{ me { sessions { nodes { id current } } } }', {}, { sessionKey: session.key });
      const other = body.data.me.sessions.nodes.find(({ current }: { current: boolean }) => !current);
      return mutation(`endSession(id: "${other.id}") { ended }`, {}, { sessionKey: session.key });
    },
    leaves: ['user:ada account.sessions_ended user:ada'],
  },
  endOtherSessions: {
    ask: async () => {
      await openSession(shop, ada);
      return mutation('endOtherSessions { ended }');
    },
    leaves: ['user:ada account.sessions_ended user:ada'],
  },
  logoutEverywhere: { ask: () => mutation('logoutEverywhere { ended }'), leaves: ['user:ada account.sessions_ended user:ada'] },
  login: {
    ask: () => mutation(`login(username: "ada", password: "${PASSWORD}") { tokenType }`, {}, {}),
    leaves: [],
    because: NO_KEY,
  },
  refresh: { ask: () => mutation(`refresh(refreshToken: "${own.refreshToken}") { tokenType }`, {}, {}), leaves: [], because: NO_KEY },
  logout: { ask: () => mutation('logout { ended }'), leaves: [], because: NO_KEY },
  register: { ask: () => mutation('register(input: { email: "cy@shop.example" })', {}, {}), leaves: [], because: NO_DEED },
  requestPasswordReset: { ask: () => mutation('requestPasswordReset(user: "ada")', {}, {}), leaves: [], because: NO_DEED },
  addItem: { ask: () => mutation('addItem(itemId: "new") { id }'), leaves: [], because: NO_SUBJECT },
  removeItem: { ask: () => mutation('removeItem(itemId: "lantern") { id }'), leaves: [], because: NO_SUBJECT },
  createBlogEntry: {
    ask: () => mutation('createBlogEntry(input: { title: "a", body: "b" }) { id }'),
    leaves: [],
    because: NO_SUBJECT,
  },
  updateBlogEntry: {
    ask: async () => mutation(`updateBlogEntry(id: "${(await shop.makeEntry(ada)).id}", input: { title: "new" }) { id }`),
    leaves: [],
    because: NO_SUBJECT,
  },
  deleteBlogEntry: {
    ask: async () => mutation(`deleteBlogEntry(id: "${(await shop.makeEntry(ada)).id}") { id }`),
    leaves: [],
    because: NO_SUBJECT,
  },
};

const credentials = { username: 'ada', password: PASSWORD };
const ROWS: Record<string, Write> = {
  [`POST ${CREATE}`]: {
    ask: () => shop.rest('POST', CREATE, { token: own.token, json: INK }),
    leaves: ['user:ada product.created product:Ink'],
  },
  'POST /token': { ask: () => shop.rest('POST', '/token', { form: credentials }), leaves: [], because: NO_KEY },
  'POST /login': { ask: () => shop.rest('POST', '/login', { form: credentials }), leaves: [], because: NO_KEY },
  'POST /session/login': { ask: () => shop.rest('POST', '/session/login', { json: credentials }), leaves: [], because: NO_KEY },
  'POST /session/logout': {
    ask: () => shop.rest('POST', '/session/logout', { json: { session_key: own.key } }),
    leaves: [],
    because: NO_KEY,
  },
  'POST /api/v2/auth/login': { ask: () => shop.rest('POST', '/api/v2/auth/login', { json: credentials }), leaves: [], because: NO_KEY },
};

describe('each way to write leaves its entries, and no other', () => {
  test('every mutation of the schema stands here', async () => {
    const type = (await makeSchema()).getType('Mutation');
    const fields = isObjectType(type) ? Object.keys(type.getFields()) : [];
    expect(Object.keys(MUTATIONS).toSorted()).toEqual(fields.toSorted());
  });

  test('every row of REST that is no GET stands here', () => {
    const rows = features.flatMap(({ routes }) => routes?.(shop.config) ?? []).filter(({ method }) => method !== 'GET');
    expect(Object.keys(ROWS).toSorted()).toEqual(rows.map(({ method, path }) => `${method} ${path}`).toSorted());
  });

  test.each(Object.entries({ ...MUTATIONS, ...ROWS }))('%s', async (_name, { ask, leaves, because }) => {
    const added = await addedBy(shop, async () => {
      const { status, body } = await ask();
      expect([status < 300, body.errors]).toEqual([true, undefined]);
    });
    expect(added).toEqual(leaves);
    expect(leaves.length === 0).toBe(because !== undefined);
  });
});

describe('an entry', () => {
  const requestId = '0af7651916cd43dd8448eb211c80319c';
  const headers = { 'X-Request-Id': requestId };

  test('says when, from where and in which request it was done, and to what', async () => {
    await shop.rest('POST', CREATE, { token: own.token, json: INK, headers });
    const [entry] = await shop.sql(`
      select now() - at < interval '1 minute' as is_new, network, request_id, actor_pk, api_key, subject_kind, subject_key, subject_name
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

  test('names what a product was and has become, as far as that differs, whatever the form of a price', async () => {
    await shop.rest('POST', CREATE, { token: own.token, json: INK });
    expect(await lastChanges(shop)).toEqual(
      Object.entries({ name: 'Ink', barcode: INK.barcode, price: '12.50' }).map(([field, after]) => ({ field, before: null, after })),
    );
    await mutation('updateProduct(pk: 2, input: { name: "Ink", price: 13 }) { pk }');
    expect(await lastChanges(shop)).toEqual([{ field: 'price', before: '12.50', after: '13.00' }]);
    await shop.sql('update product set price = 13 where pk = 2');
    expect(await addedBy(shop, () => mutation('updateProduct(pk: 2, input: { price: "13.0" }) { pk }'))).toEqual([]);
    await mutation('deleteProduct(pk: 2) { pk }');
    expect(await lastChanges(shop)).toEqual(
      Object.entries({ name: 'Ink', barcode: INK.barcode, price: '13.00' }).map(([field, before]) => ({ field, before, after: null })),
    );
  });

  test('names the scopes before and after', async () => {
    await accounts.changeScopes(shop.context(), 'ada', { add: ['audit:read'], remove: ['blog:write'] });
    expect(await lastChanges(shop)).toEqual([{ field: 'scopes', before: 'products:write blog:write', after: 'products:write audit:read' }]);
  });

  test.each<[string, () => RequestOptions, string]>([
    ['a user in a session, by its key', () => ({ sessionKey: own.key }), 'user:ada'],
    ['a user in a session, by a token', () => ({ token: own.token }), 'user:ada'],
    ['a user by a token without a session', () => ({ as: ada }), 'user:ada'],
    ['a machine, by an API key', () => ({ token: apiKey.key }), 'api_key:ada'],
  ])('says who it was: %s, at both doors', async (_who, request, actor) => {
    const { name, ...rest } = INK;
    const added = await addedBy(shop, async () => {
      await shop.rest('POST', CREATE, { ...request(), json: { name, ...rest } });
      await mutation('deleteProduct(pk: 1) { pk }', {}, request());
    });
    expect(added).toEqual([`${actor} product.created product:Ink`, `${actor} product.deleted product:Lamp`]);
    const [{ api_key: kid } = {}] = await shop.sql('select api_key from audit_entry order by pk desc limit 1');
    expect(kid).toBe(actor.startsWith('api_key') ? apiKey.apiKey.kid : null);
  });

  test('of an operator has a name, and no request', async () => {
    await accounts.disable({ ...shop.context(), operator: 'olga' }, 'ada');
    const [entry] = await shop.sql('select actor_kind, actor_name, actor_pk, request_id from audit_entry order by pk desc limit 1');
    expect(entry).toEqual({ actor_kind: 'operator', actor_name: 'olga', actor_pk: null, request_id: null });
  });

  test('outlives the user who did it, and the one it was done to', async () => {
    const before = await trailOf(shop);
    await shop.sql('delete from "user"');
    expect([before.length, await trailOf(shop)]).toEqual([1, before]);
  });
});

describe('what changes nothing leaves no entry', () => {
  const none: [string, () => Promise<unknown>][] = [
    ['a product that is as it was', () => mutation('updateProduct(pk: 1, input: { name: "Lamp", price: 24.5 }) { pk }')],
    ['a barcode that is taken', () => shop.rest('POST', CREATE, { as: ada, json: { ...INK, barcode: '4006381333931' } })],
    ['a barcode that is taken, in a change', () => takenByChange()],
    ['input that is refused', () => shop.rest('POST', CREATE, { as: ada, json: { ...INK, price: -1 } })],
    ['a batch that is refused', () => mutation('createProducts(inputs: [{ name: "", barcode: "1", price: 1 }]) { error { code } }')],
    ['an empty batch', () => mutation('createProducts(inputs: []) { error { code } }')],
    ['a product that there is none of', () => mutation('deleteProduct(pk: 9) { pk }')],
    ['a caller without credentials', () => shop.rest('POST', CREATE, { json: INK })],
    ['a caller without the scope', async () => shop.rest('POST', CREATE, { as: await shop.makeUser(), json: INK })],
    ['a wrong password', () => mutation(`changePassword(current: "${NEXT}", new: "${NEXT}") { id }`)],
    ['a token of a mail that is not good', () => mutation(`resetPassword(token: "${newKey()}", new: "${NEXT}") { id }`, {}, {})],
    [
      'a name that is taken',
      () => mutation(`confirmRegistration(input: { token: "${token}", username: "ada", password: "${NEXT}" }) { id }`),
    ],
    ['an account whose name is taken', () => accounts.create(shop.context(), credentials).catch(() => undefined)],
    ['the API key of somebody else', async () => revokedBy(await shop.makeUser())],
    ['more scopes for a key than its owner has', () => mutation('createApiKey(input: { name: "x", scopes: ["users:read"] }) { key }')],
    ['no sessions to end', async () => mutation('logoutEverywhere { ended }', {}, { as: await shop.makeUser() })],
    ['scopes that are held', () => accounts.changeScopes(shop.context(), 'ada', { add: ['blog:write'] })],
    ['scopes that are not held', () => accounts.changeScopes(shop.context(), 'ada', { remove: ['users:read'] })],
    ['a user who is enabled', () => accounts.enable(shop.context(), 'ada')],
    ['what is undone', () => undone()],
  ];

  test.each(none)('%s', async (_what, work) => {
    expect(await addedBy(shop, work)).toEqual([]);
  });

  async function takenByChange(): Promise<void> {
    await shop.makeProduct({ barcode: INK.barcode });
    await mutation(`updateProduct(pk: 2, input: { name: "New", barcode: "4006381333931" }) { pk }`);
  }

  function revokedBy(as: User): Promise<Answer> {
    return mutation(`revokeApiKey(id: "${apiKey.apiKey.id}") { id }`, {}, { as });
  }

  async function undone(): Promise<void> {
    const ctx: Context = { ...shop.context(), caller: { pk: ada.pk, username: 'ada', scopes: new Set(ada.scopes) } };
    const work = inTransaction(ctx, async (tx) => {
      await products.create(tx, { ...INK, price: '12.50' });
      await products.remove(tx, '1');
      await accounts.disable(tx, 'ada');
      throw new Error('undone');
    });
    await expect(work).rejects.toThrow('undone');
  }
});

describe('what is done once leaves one entry', () => {
  const created = ['user:ada product.created product:Ink'];

  test('a request that is sent again with its idempotency key, one after another and at once', async () => {
    const request = { token: own.token, json: INK, headers: { 'Idempotency-Key': 'once' } };
    const added = await addedBy(shop, async () => {
      for (let time = 0; time < 2; time++) await shop.rest('POST', CREATE, request);
      await Promise.all([1, 2, 3].map(() => shop.rest('POST', CREATE, request)));
    });
    expect(added).toEqual(created);
  });

  test('a barcode that several want at once', async () => {
    const added = await addedBy(shop, () => Promise.all([1, 2, 3, 4].map(() => shop.rest('POST', CREATE, { as: ada, json: INK }))));
    expect(added).toEqual(created);
  });

  test('a product that several delete at once', async () => {
    const added = await addedBy(shop, () => Promise.all([1, 2, 3].map(() => mutation('deleteProduct(pk: 1) { pk }'))));
    expect(added).toEqual(['user:ada product.deleted product:Lamp']);
  });

  test('a key that several revoke at once', async () => {
    const added = await addedBy(shop, () => Promise.all([1, 2, 3].map(() => mutation(`revokeApiKey(id: "${apiKey.apiKey.id}") { id }`))));
    expect(added).toEqual(['user:ada api_key.revoked api_key:till']);
  });

  test('a user who is disabled twice', async () => {
    const added = await addedBy(shop, async () => {
      for (let time = 0; time < 2; time++) await accounts.disable(shop.context(), 'ada');
    });
    expect(added).toEqual(['anonymous account.disabled user:ada']);
  });

  test('scopes that several give at once: each says what was there before', async () => {
    await Promise.all(
      (['users:read', 'audit:read'] as const).map((scope) => accounts.changeScopes(shop.context(), 'ada', { add: [scope] })),
    );
    const rows = await shop.sql(`select changes -> 0 as change from audit_entry where action = 'account.scopes_changed' order by pk`);
    const [first, second] = rows.map(({ change }) => change as { before: string; after: string });
    expect([first?.before, second?.before]).toEqual(['products:write blog:write', first?.after]);
    expect(second?.after.split(' ')).toHaveLength(4);
  });
});

test('U3 no password, hash, key or token is in the trail, in whatever form it is stored', async () => {
  const made = (await mutation('createApiKey(input: { name: "stock", scopes: [] }) { key apiKey { id } }')).body.data.createApiKey;
  const hash = async () =>
    (await shop.sql('select hashed_password from "user" where hashed_password is not null')).map((row) => row['hashed_password']);
  const secrets: unknown[] = [PASSWORD, NEXT, token, made.key, apiKey.key, own.key, own.token, own.refreshToken, ...(await hash())];
  await mutation(`revokeApiKey(id: "${made.apiKey.id}") { id }`);
  await mutation(`changePassword(current: "${PASSWORD}", new: "${NEXT}") { id }`);
  secrets.push(...(await hash()));
  await mutation(`confirmRegistration(input: { token: "${token}", username: "bea", password: "${NEXT}" }) { id }`, {}, {});
  // The new password has taken the one from before.
  await mailToken();
  await mutation(`resetPassword(token: "${token}", new: "${NEXT} too") { id }`, {}, {});
  await accounts.create(shop.context(), { username: 'cy', password: NEXT, email: 'cy@shop.example' });
  await accounts.setPassword(shop.context(), 'cy', `${NEXT} three`);
  secrets.push(...(await hash()), ...[token, made.key, apiKey.key, own.key].map((key) => hashKey(String(key)).toString('hex')));
  const rows = await shop.sql('select audit_entry::text as row from audit_entry');
  const text = rows.map(({ row }) => String(row)).join('\n');
  expect(rows.length).toBeGreaterThan(7);
  expect(secrets.filter((secret) => text.includes(String(secret)))).toEqual([]);
  expect(text).not.toMatch(/\$2[aby]\$|sk_|eyJ|@shop\.example/);
});

describe('with ANONYMOUS_SCOPES', () => {
  const open = new Shop({ ANONYMOUS_SCOPES: 'products:write' });

  test('a caller without credentials is named as such', async () => {
    await open.start();
    try {
      await open.rest('POST', CREATE, { json: INK });
      expect((await trailOf(open)).at(-1)).toBe('anonymous product.created product:Ink');
    } finally {
      await open.stop();
    }
  });
});
