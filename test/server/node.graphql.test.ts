import { describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { Scope } from '../../src/core/scopes.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const FIELDS = `
  __typename
  id
  ... on Product { name }
  ... on User { username }
  ... on Item { itemId }
  ... on BlogEntry { title }
  ... on Session { current }`;
const NODE = `query ($id: ID!) { node(id: $id) { ${FIELDS} } }`;
const NODES = `query ($ids: [ID!]!) { nodes(ids: $ids) { ${FIELDS} } }`;

/** What a user has, by its type. */
const MADE = {
  user: async (owner: User) => owner,
  item: (owner: User) => shop.makeItem(owner, 'lamp'),
  entry: (owner: User) => shop.makeEntry(owner, { title: 'Hello' }),
  draft: (owner: User) => shop.makeEntry(owner, { title: 'Draft', published: false }),
  session: async (owner: User) => (await sessions.open(shop.context(), owner, null)).session,
};

describe('GraphQL contract, node', () => {
  test('it finds a product for everyone', async () => {
    const { id, name } = await shop.makeProduct();
    expect((await shop.graphql(NODE, { id })).body).toEqual({
      data: { node: { __typename: 'Product', id, name } },
    });
  });

  const ITEM = { __typename: 'Item', itemId: 'lamp' };
  test.each<[string, keyof typeof MADE, Scope[] | 'owner', object]>([
    ['an item for its owner', 'item', 'owner', ITEM],
    ['an item with users:read', 'item', ['users:read'], ITEM],
    [
      'a published entry for any signed-in caller',
      'entry',
      [],
      { __typename: 'BlogEntry', title: 'Hello' },
    ],
    ['a draft for its creator', 'draft', 'owner', { __typename: 'BlogEntry', title: 'Draft' }],
  ])('it finds %s', async (_what, type, scopes, found) => {
    const owner = await shop.makeUser();
    const { id } = await MADE[type](owner);
    const as = scopes === 'owner' ? owner : await shop.makeUser({ scopes });
    expect((await shop.graphql(NODE, { id }, { as })).body).toEqual({
      data: { node: { id, ...found } },
    });
  });

  test.each<[string, keyof typeof MADE, Scope[]?]>([
    ["another user's item", 'item', ['products:write', 'blog:write']],
    ["another user's draft", 'draft', ['products:write', 'blog:write']],
    ["another user's session", 'session', ['products:write', 'blog:write']],
    ['a user, without credentials', 'user'],
    ['an item, without credentials', 'item'],
    ['a blog entry, without credentials', 'entry'],
    ['a session, without credentials', 'session'],
  ])('it is null for %s', async (_what, type, scopes) => {
    const { id } = await MADE[type](await shop.makeUser());
    const request = scopes ? { as: await shop.makeUser({ scopes }) } : {};
    expect((await shop.graphql(NODE, { id }, request)).body).toEqual({ data: { node: null } });
  });
});

describe('GraphQL contract, nodes', () => {
  test('they are in the order of the ids, with duplicates, and null for unknown ids', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const [lamp, chair] = [
      await shop.makeProduct({ name: 'Lamp' }),
      await shop.makeProduct({ name: 'Chair' }),
    ];
    const item = await shop.makeItem(user, 'lamp');
    const hidden = await shop.makeItem(await shop.makeUser());
    const ids = [chair.id, item.id, 'x', user.id, hidden.id, lamp.id, chair.id];
    const answer = await shop.graphql(NODES, { ids }, { as: user });
    expect(answer.body).toEqual({
      data: {
        nodes: [
          { __typename: 'Product', id: chair.id, name: 'Chair' },
          { __typename: 'Item', id: item.id, itemId: 'lamp' },
          null,
          { __typename: 'User', id: user.id, username: 'ada' },
          null,
          { __typename: 'Product', id: lamp.id, name: 'Lamp' },
          { __typename: 'Product', id: chair.id, name: 'Chair' },
        ],
      },
    });
  });

  test('an id with one character too many, or in another alphabet of base64, is null', async () => {
    const { id } = await shop.makeProduct();
    const ids = [`${id}A`, `${id}=`, ` ${id}`, `${id} `, `${id}\n`, id.slice(0, -1)];
    const answer = await shop.graphql(NODES, { ids });
    expect(answer.body).toEqual({ data: { nodes: ids.map(() => null) } });
  });

  test('100 ids are accepted, 101 are BAD_USER_INPUT', async () => {
    const { id } = await shop.makeProduct();
    const [most, more] = [
      await shop.graphql(NODES, { ids: Array(100).fill(id) }),
      await shop.graphql(NODES, { ids: Array(101).fill(id) }),
    ];
    expect(most.body.data.nodes).toHaveLength(100);
    expect([more.body.data, extensionsOf(more)]).toEqual([
      undefined,
      [{ code: 'BAD_USER_INPUT', fields: [{ field: 'ids', message: expect.any(String) }] }],
    ]);
  });
});

function extensionsOf({ body }: Answer): object[] {
  return body.errors.map(({ extensions }: { extensions: object }) => extensions);
}
