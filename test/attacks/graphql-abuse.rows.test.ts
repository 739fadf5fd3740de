import { describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { codes, useShop } from '../support/shop.ts';

const shop = useShop();

describe('lists inside lists', () => {
  test('D22 loaders are not shared between requests: each concurrent caller gets only its own data', async () => {
    const users: User[] = [];
    for (let made = 0; made < 8; made++) {
      const user = await shop.makeUser({ scopes: made % 2 === 0 ? [] : ['users:read'] });
      await shop.makeItem(user, `of ${user.username}`);
      await shop.makeEntry(user, { title: `draft of ${user.username}`, published: false });
      users.push(user);
    }
    const query =
      '{ me { username email items { nodes { itemId } } } blog { nodes { title creator { username } } } users { nodes { email items(first: 1) { nodes { itemId } } } } }';
    const callers = Array.from({ length: 200 }, (_, at) => users[at % users.length]).filter(
      (user) => user !== undefined,
    );
    const answers = await Promise.all(
      callers.map(async (as) => ({ as, answer: await shop.graphql(query, {}, { as }) })),
    );
    for (const { as, answer } of answers) {
      const { username, email } = as;
      expect(answer.body.data).toEqual({
        me: { username, email, items: { nodes: [{ itemId: `of ${username}` }] } },
        blog: { nodes: [{ title: `draft of ${username}`, creator: { username } }] },
        users: {
          nodes: users.map((user) =>
            user === as || as.scopes.includes('users:read')
              ? { email: user.email, items: { nodes: [{ itemId: `of ${user.username}` }] } }
              : { email: null, items: { nodes: [] } },
          ),
        },
      });
    }
  });
});

describe('fields that clients may not set', () => {
  const EXTRA = ['hashedPassword', 'disabled', 'scopes'];
  const inputs: [string, string, string, Record<string, unknown>][] = [
    [
      'createProduct',
      'ProductInput!',
      'createProduct(input: $in) { pk }',
      { name: 'Chair', barcode: '4006381333931', price: 1 },
    ],
    [
      'updateProduct',
      'ProductPatch!',
      'updateProduct(pk: 1, input: $in) { pk }',
      { name: 'Chair' },
    ],
    [
      'createBlogEntry',
      'BlogEntryInput!',
      'createBlogEntry(input: $in) { id }',
      { title: 'Hello', body: 'Text.' },
    ],
    [
      'updateBlogEntry',
      'BlogEntryPatch!',
      'updateBlogEntry(id: "x", input: $in) { id }',
      { title: 'Hello' },
    ],
  ];

  test.each(
    inputs.flatMap(([name, type, field, input]) =>
      EXTRA.map((extra) => [name, extra, type, field, input] as const),
    ),
  )('D24 %s accepts no %s', async (_name, extra, type, field, input) => {
    const user = await shop.makeUser({ scopes: ['products:write', 'blog:write'] });
    await shop.makeProduct({ name: 'Lamp' });
    const before = await stored();
    const members = Object.entries(input).map(
      ([name, value]) => `${name}: ${JSON.stringify(value)}`,
    );
    const bodies = [
      // As text, because __proto__ in an object literal would set the prototype.
      `{"query":"mutation ($in: ${type}) { ${field.replaceAll('"', '\\"')} }","variables":{"in":{"${extra}":1,${JSON.stringify(input).slice(1)}}}`,
      JSON.stringify({
        query: `mutation { ${field.replace('$in', `{ ${[...members, `${extra}: 1`].join(', ')} }`)} }`,
      }),
    ];
    for (const body of bodies) {
      const answer = await shop.rest('POST', '/graphql', {
        as: user,
        body,
        headers: { 'Content-Type': 'application/json' },
      });
      expect([answer.status, 'data' in answer.body]).toEqual([400, false]);
      expect(['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED']).toContain(codes(answer)[0]);
    }
    expect(await stored()).toEqual(before);
  });

  async function stored(): Promise<unknown> {
    return [
      await shop.sql('select * from product'),
      await shop.sql('select * from blog_entry'),
      await shop.sql('select * from "user"'),
      await shop.sql('select * from item'),
    ];
  }
});
