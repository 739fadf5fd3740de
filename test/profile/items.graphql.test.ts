import { describe, expect, test } from '../support/jest.ts';
import type { Scope } from '../../src/core/scopes.ts';
import { myItems } from '../../src/features/profile/profile.service.ts';
import { walkFiveByTwos } from '../support/paging.ts';
import { codes, useShop } from '../support/shop.ts';

const shop = useShop();

const ALL_FIELDS = 'id itemId owner { username } createdAt';
const ADD = `mutation ($itemId: String!) { addItem(itemId: $itemId) { ${ALL_FIELDS} } }`;
const REMOVE = `mutation ($itemId: String!) { removeItem(itemId: $itemId) { ${ALL_FIELDS} } }`;
const MINE = `query ($first: Int, $after: String, $last: Int, $before: String) {
  me {
    items(first: $first, after: $after, last: $last, before: $before) {
      totalCount
      edges { cursor }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      nodes { itemId }
    }
  }
}`;
const OF_ALL = '{ users { nodes { items { totalCount nodes { itemId } } } } }';

test('a streamed list of items keeps no page that it has sent', async () => {
  const user = await shop.makeUser();
  await shop.makeItem(user, 'lamp');
  const caller = { ...user, scopes: new Set<Scope>() };
  const ctx = { ...shop.context(), caller };
  for await (const batch of myItems(ctx)) expect(batch).toMatchObject([{ itemId: 'lamp' }]);
  expect(ctx.loaders.size).toBe(0);
});

describe('GraphQL contract, addItem', () => {
  test('it adds an item for the caller and returns it', async () => {
    const user = await shop.makeUser({ username: 'ada' });
    const before = shop.now();
    const answer = await shop.graphql(ADD, { itemId: ' red lamp ' }, { as: user });
    const { id, createdAt } = answer.body.data.addItem;
    expect(answer.body).toEqual({
      data: { addItem: { id, itemId: 'red lamp', owner: { username: 'ada' }, createdAt } },
    });
    expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(before.getTime());
    const query = `{ node(id: "${id}") { ... on Item { ${ALL_FIELDS} } } }`;
    expect((await shop.graphql(query, {}, { as: user })).body.data.node).toEqual(
      answer.body.data.addItem,
    );
  });

  test('two users may have items of the same name', async () => {
    await shop.makeItem(await shop.makeUser(), 'lamp');
    const answer = await shop.graphql(
      ADD,
      { itemId: 'lamp' },
      { as: await shop.makeUser({ username: 'ada' }) },
    );
    expect(answer.body.data.addItem).toMatchObject({ itemId: 'lamp', owner: { username: 'ada' } });
  });

  test('an item that the caller already has is CONFLICT', async () => {
    const user = await shop.makeUser();
    await shop.makeItem(user, 'lamp');
    const answer = await shop.graphql(ADD, { itemId: ' lamp' }, { as: user });
    expect(answer.body.data).toBeNull();
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'CONFLICT',
      fields: [{ field: 'itemId', message: expect.any(String) }],
    });
    expect(await stored()).toEqual(['lamp']);
  });

  test.each([
    ['that is empty', ''],
    ['of spaces', '  '],
    ['of 256 characters', 'x'.repeat(256)],
    ['of two lines', 'a\nb'],
    ['with a NUL', 'a\0b'],
    ['with half a character', 'a\ud800'],
  ])('a name %s is BAD_USER_INPUT', async (_name, itemId) => {
    const answer = await shop.graphql(ADD, { itemId }, { as: await shop.makeUser() });
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field: 'itemId', message: expect.any(String) }],
    });
    expect(await stored()).toEqual([]);
  });
});

describe('GraphQL contract, removeItem', () => {
  test("it removes and returns only the caller's item", async () => {
    const [user, other] = [await shop.makeUser({ username: 'ada' }), await shop.makeUser()];
    const item = await shop.makeItem(user, 'lamp');
    await shop.makeItem(user, 'chair');
    await shop.makeItem(other, 'lamp');
    const answer = await shop.graphql(REMOVE, { itemId: 'lamp' }, { as: user });
    expect(answer.body).toEqual({
      data: {
        removeItem: {
          id: item.id,
          itemId: 'lamp',
          owner: { username: 'ada' },
          createdAt: item.createdAt.toISOString(),
        },
      },
    });
    expect(await stored()).toEqual(['chair', 'lamp']);
  });

  test('an item that only others have is NOT_FOUND', async () => {
    await shop.makeItem(await shop.makeUser(), 'lamp');
    const answer = await shop.graphql(REMOVE, { itemId: 'lamp' }, { as: await shop.makeUser() });
    expect([answer.body.data, codes(answer)]).toEqual([null, ['NOT_FOUND']]);
    expect(await stored()).toEqual(['lamp']);
  });
});

describe('GraphQL contract, User.items', () => {
  test('pages forward and back, to both ends, are the whole list, the oldest first', async () => {
    const [user, other] = [await shop.makeUser(), await shop.makeUser()];
    for (const name of ['e', 'd', 'c', 'b', 'a']) {
      await shop.makeItem(user, name);
      await shop.makeItem(other, name);
    }
    const page = async (args: object) =>
      (await shop.graphql(MINE, { ...args }, { as: user })).body.data.me.items;

    expect((await walkFiveByTwos(page)).map(namesOf)).toEqual([
      ['e', 'd'],
      ['c', 'b'],
      ['a'],
      ['c', 'b'],
      ['e', 'd'],
    ]);
  });

  test.each([
    [{ first: 0 }, 'first'],
    [{ last: 101 }, 'last'],
    [{ after: 'x' }, 'after'],
  ])('%j is BAD_USER_INPUT', async (args, field) => {
    const answer = await shop.graphql(MINE, args, { as: await shop.makeUser() });
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field, message: expect.any(String) }],
    });
  });

  test.each<[string, Scope[], object]>([
    ['without users:read those of others are empty', [], { totalCount: 0, nodes: [] }],
    [
      'with users:read all are visible',
      ['users:read'],
      { totalCount: 1, nodes: [{ itemId: 'chair' }] },
    ],
  ])('%s', async (_what, scopes, ofOther) => {
    const [user, other] = [await shop.makeUser({ scopes }), await shop.makeUser()];
    await shop.makeItem(user, 'lamp');
    await shop.makeItem(other, 'chair');
    const { body } = await shop.graphql(OF_ALL, {}, { as: user });
    expect(body.data.users.nodes).toEqual([
      { items: { totalCount: 1, nodes: [{ itemId: 'lamp' }] } },
      { items: ofOther },
    ]);
  });
});

async function stored(): Promise<unknown[]> {
  return (await shop.sql('select item_id from item order by pk')).map((row) => row['item_id']);
}

function namesOf({ nodes }: { nodes: { itemId: string }[] }): string[] {
  return nodes.map(({ itemId }) => itemId);
}
