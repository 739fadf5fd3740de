import { describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { forge, claimsOf } from '../support/forge.ts';
import { openSession } from '../support/logins.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const shop = useShop();

/** Kinds of credentials, narrowed to some scopes. */
const NARROWED: Record<string, (user: User, scopes: string[]) => Promise<string>> = {
  'an API key': async (user, scopes) => {
    const made = await shop.graphql(
      'mutation ($input: ApiKeyInput!) { createApiKey(input: $input) { key } }',
      { input: { name: 'reader', scopes } },
      { as: user },
    );
    return made.body.data.createApiKey.key as string;
  },
  'a session': async ({ username }, scopes) => {
    const made = await shop.graphql(
      'mutation ($username: String!, $password: String!, $scopes: [String!]) { login(username: $username, password: $password, scopes: $scopes) { accessToken } }',
      { username, password: PASSWORD, scopes },
    );
    return made.body.data.login.accessToken as string;
  },
  'a token of another issuer': async (user, scopes) => forge(claimsOf(shop, user, { scopes })),
};

const CHANGES = [
  'mutation { addItem(itemId: "lamp") { id } }',
  'mutation { removeItem(itemId: "desk") { id } }',
  'mutation { createBlogEntry(input: { title: "x", body: "x" }) { id } }',
  'mutation ($id: ID!) { updateBlogEntry(id: $id, input: { title: "y" }) { id } }',
  'mutation ($id: ID!) { deleteBlogEntry(id: $id) { id } }',
  'mutation { createProduct(input: { name: "x", barcode: "4006381333931", price: 1 }) { id } }',
  'mutation { createProducts(inputs: [{ name: "x", barcode: "4006381333931", price: 1 }]) { product { id } } }',
  'mutation { updateProduct(pk: 1, input: { name: "y" }) { id } }',
  'mutation { deleteProduct(pk: 1) { id } }',
  'mutation { createApiKey(input: { name: "more", scopes: [] }) { key } }',
  'mutation { changePassword(current: "nothing", new: "something-else-1") { id } }',
  'mutation ($id: ID!) { revokeApiKey(id: $id) { id } }',
  'mutation ($id: ID!) { endSession(id: $id) { ended } }',
  'mutation { logoutEverywhere { ended } }',
];

const seller = async () => {
  const user = await shop.makeUser({ scopes: ['products:write', 'users:read', 'blog:write'] });
  await shop.makeProduct({ name: 'x' });
  await shop.graphql('mutation { addItem(itemId: "desk") { id } }', {}, { as: user });
  const made = await shop.graphql(
    'mutation { createBlogEntry(input: { title: "x", body: "x" }) { id } }',
    {},
    { as: user },
  );
  return { user, id: made.body.data.createBlogEntry.id as string };
};
const stored = () =>
  shop.sql(
    'select (select count(*)::int from item) as items, (select array_agg(name) from product) as products, title from blog_entry',
  );

describe.each(Object.keys(NARROWED))('K6 %s without a write scope', (kind) => {
  test.each([[[]], [['users:read']]])(
    'K6 changes nothing, not even its own data, and reads: %j',
    async (scopes) => {
      const { user, id } = await seller();
      const token = (await NARROWED[kind]?.(user, scopes)) ?? '';
      for (const change of CHANGES) {
        const { body } = await shop.graphql(change, change.includes('$id') ? { id } : {}, {
          token,
        });
        expect([change, body.errors?.[0].extensions.code]).toEqual([change, 'FORBIDDEN']);
      }
      expect(await stored()).toEqual([{ items: 1, products: ['x'], title: 'x' }]);
      const { body } = await shop.graphql('{ me { items { nodes { itemId } } } }', {}, { token });
      expect(body.data.me.items.nodes).toEqual([{ itemId: 'desk' }]);
    },
  );
});

test('K6 without credentials, no change is made: UNAUTHENTICATED', async () => {
  const { id } = await seller();
  for (const change of CHANGES) {
    const { body } = await shop.graphql(change, change.includes('$id') ? { id } : {});
    expect([change, body.errors?.[0].extensions.code]).toEqual([change, 'UNAUTHENTICATED']);
  }
  expect(await stored()).toEqual([{ items: 1, products: ['x'], title: 'x' }]);
});

test("K6 a user without scopes changes the user's own data", async () => {
  const user = await shop.makeUser();
  for (const request of [{ as: user }, { token: (await openSession(shop, user)).token }]) {
    const { body } = await shop.graphql(
      `mutation { addItem(itemId: "${Object.keys(request)[0]}") { itemId } }`,
      {},
      request,
    );
    expect(body.errors).toBeUndefined();
  }
});

test.each(['update', 'delete'])(
  'K6 a creator without blog:write cannot %s an entry',
  async (action) => {
    const { user, id } = await seller();
    await shop.sql(`update "user" set scopes = '{products:write}' where pk = ${user.pk}`);
    const document = action === 'update' ? CHANGES[3] : CHANGES[4];
    expect((await shop.graphql(document ?? '', { id }, { as: user })).body.errors[0]).toMatchObject(
      {
        message: 'Missing scope: blog:write',
        extensions: { code: 'FORBIDDEN' },
      },
    );
  },
);
