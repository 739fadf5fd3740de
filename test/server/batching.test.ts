import { expect, test } from '../support/jest.ts';
import * as apiKeys from '../../src/features/api-keys/api-key.service.ts';
import * as sessions from '../../src/features/auth/sessions/session.service.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop } from '../support/shop.ts';
import { recordStatements } from '../support/statements.ts';

// Twenty users with all their lists exceed the default cost limit.
const shop = useShop({ GRAPHQL_MAX_COST: '10000' });

const PEOPLE = `{
  users(first: 50) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage }
    nodes {
      username
      items { totalCount pageInfo { hasNextPage hasPreviousPage } nodes { itemId owner { username } } }
      blog { totalCount nodes { title creator { username email } } }
      sessions { totalCount nodes { current } }
      apiKeys { totalCount nodes { name } }
    }
  }
}`;

const NODES = `query ($ids: [ID!]!) {
  nodes(ids: $ids) {
    ... on Product { name }
    ... on User { username }
    ... on Item { itemId owner { username } }
    ... on BlogEntry { title creator { username } }
    ... on Session { current }
  }
}`;

test('GraphQL contract, No field costs one query for each row: twenty users with all their lists take as many statements as two', async () => {
  const reader = await shop.makeUser({ scopes: ['users:read'] });
  await makePerson();
  const few = await recordStatements(() => shop.graphql(PEOPLE, {}, { as: reader }));
  for (let made = 2; made < 20; made++) await makePerson();

  const many = await recordStatements(() => shop.graphql(PEOPLE, {}, { as: reader }));

  expect(few.answer.body.data.users.nodes).toHaveLength(2);
  expect(many.answer.body.data.users.nodes).toHaveLength(20);
  expect(few.statements.length).toBeGreaterThan(0);
  expect(many.statements.length).toBe(few.statements.length);
});

test('GraphQL contract, No field costs one query for each row: each row of a batch gets its own lists', async () => {
  const reader = await shop.makeUser({ username: 'reader', email: null, scopes: ['users:read'] });
  const ada = await shop.makeUser({ username: 'ada', email: 'ada@shop.example' });
  const max = await shop.makeUser({ username: 'max', email: 'max@shop.example' });
  await shop.makeItem(max, 'lamp');
  await shop.makeItem(ada, 'chair');
  await shop.makeItem(max, 'table');
  await shop.makeEntry(ada, { title: 'Hello' });
  await sessions.open(shop.context(), reader, null);
  await apiKeys.createFor(shop.context(), reader, { name: 'till', scopes: [] });

  const answer = await shop.graphql(PEOPLE, {}, { as: reader });

  expect(answer.body.data.users).toEqual({
    totalCount: 3,
    pageInfo: { hasNextPage: false, hasPreviousPage: false },
    nodes: [
      {
        username: 'reader',
        items: items('reader'),
        blog: { totalCount: 0, nodes: [] },
        sessions: { totalCount: 1, nodes: [{ current: false }] },
        apiKeys: { totalCount: 1, nodes: [{ name: 'till' }] },
      },
      {
        username: 'ada',
        items: items('ada', 'chair'),
        blog: {
          totalCount: 1,
          nodes: [{ title: 'Hello', creator: { username: 'ada', email: 'ada@shop.example' } }],
        },
        sessions: { totalCount: 0, nodes: [] },
        apiKeys: { totalCount: 0, nodes: [] },
      },
      {
        username: 'max',
        items: items('max', 'lamp', 'table'),
        blog: { totalCount: 0, nodes: [] },
        sessions: { totalCount: 0, nodes: [] },
        apiKeys: { totalCount: 0, nodes: [] },
      },
    ],
  });
});

test('GraphQL contract, No field costs one query for each row: fifty nodes of five types take as many statements as five', async () => {
  const reader = await shop.makeUser({ scopes: ['users:read'] });
  const ids: string[] = [];
  for (let made = 0; made < 10; made++) {
    const person = await makePerson();
    const item = await shop.makeItem(person);
    const entry = await shop.makeEntry(person);
    const { session } = await sessions.open(shop.context(), reader, null);
    ids.push((await shop.makeProduct()).id, person.id, item.id, entry.id, session.id);
  }
  const few = await recordStatements(() =>
    shop.graphql(NODES, { ids: ids.slice(0, 5) }, { as: reader }),
  );

  const many = await recordStatements(() => shop.graphql(NODES, { ids }, { as: reader }));

  expect(many.answer.body.data.nodes.filter((node: unknown) => node !== null)).toHaveLength(50);
  expect(many.statements.length).toBe(few.statements.length);
});

test('GraphQL, 6.2.2: a mutation sees the writes of the one before it in the same request', async () => {
  const user = await shop.makeUser();
  const query = `mutation {
    a: addItem(itemId: "lamp") { owner { items { totalCount nodes { itemId } } } }
    b: addItem(itemId: "chair") { owner { items { totalCount nodes { itemId } } } }
  }`;

  const answer = await shop.graphql(query, {}, { as: user });

  expect(answer.body.data).toEqual({
    a: { owner: { items: { totalCount: 1, nodes: [{ itemId: 'lamp' }] } } },
    b: { owner: { items: { totalCount: 2, nodes: [{ itemId: 'lamp' }, { itemId: 'chair' }] } } },
  });
});

/** A user with two items, two entries and a session. */
async function makePerson(): Promise<User> {
  const person = await shop.makeUser();
  for (let made = 0; made < 2; made++) {
    await shop.makeItem(person);
    await shop.makeEntry(person);
  }
  await sessions.open(shop.context(), person, null);
  return person;
}

function items(owner: string, ...ids: string[]) {
  return {
    totalCount: ids.length,
    pageInfo: { hasNextPage: false, hasPreviousPage: false },
    nodes: ids.map((itemId) => ({ itemId, owner: { username: owner } })),
  };
}
