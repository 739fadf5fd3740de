import { describe, expect, test } from '../support/jest.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
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

describe('GraphQL contract, node', () => {
  test('it finds a product for everyone', async () => {
    const { id, name } = await shop.makeProduct();
    expect((await shop.graphql(NODE, { id })).body).toEqual({
      data: { node: { __typename: 'Product', id, name } },
    });
  });

  test('it finds an item for its owner, and with users:read', async () => {
    const user = await shop.makeUser();
    const { id } = await shop.makeItem(user, 'lamp');
    const found = { data: { node: { __typename: 'Item', id, itemId: 'lamp' } } };
    expect((await shop.graphql(NODE, { id }, { as: user })).body).toEqual(found);
    expect(
      (await shop.graphql(NODE, { id }, { as: await shop.makeUser({ scopes: ['users:read'] }) }))
        .body,
    ).toEqual(found);
  });

  test('it finds a published entry for any signed-in caller, and a draft for its creator', async () => {
    const user = await shop.makeUser();
    const entry = await shop.makeEntry(user, { title: 'Hello' });
    const draft = await shop.makeEntry(user, { title: 'Draft', published: false });
    const others = await shop.graphql(NODE, { id: entry.id }, { as: await shop.makeUser() });
    const own = await shop.graphql(NODE, { id: draft.id }, { as: user });
    expect(others.body).toEqual({
      data: { node: { __typename: 'BlogEntry', id: entry.id, title: 'Hello' } },
    });
    expect(own.body).toEqual({
      data: { node: { __typename: 'BlogEntry', id: draft.id, title: 'Draft' } },
    });
  });

  test.each([
    ["another user's item", async (other: User) => (await shop.makeItem(other)).id],
    [
      "another user's draft",
      async (other: User) => (await shop.makeEntry(other, { published: false })).id,
    ],
    [
      "another user's session",
      async (other: User) => (await sessions.open(shop.context(), other, null)).session.id,
    ],
  ])('it is null for %s', async (_name, made) => {
    const id = await made(await shop.makeUser());
    const answer = await shop.graphql(
      NODE,
      { id },
      { as: await shop.makeUser({ scopes: ['products:write', 'blog:write'] }) },
    );
    expect(answer.body).toEqual({ data: { node: null } });
  });

  test.each([
    ['a user', async (user: User) => user.id],
    ['an item', async (user: User) => (await shop.makeItem(user)).id],
    ['a blog entry', async (user: User) => (await shop.makeEntry(user)).id],
    [
      'a session',
      async (user: User) => (await sessions.open(shop.context(), user, null)).session.id,
    ],
  ])('it is null for %s, which a caller without credentials may not see', async (_name, made) => {
    const answer = await shop.graphql(NODE, { id: await made(await shop.makeUser()) });
    expect(answer.body).toEqual({ data: { node: null } });
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
