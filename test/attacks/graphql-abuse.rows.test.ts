import { describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { recordStatements } from '../support/statements.ts';
import { codes, useShop } from '../support/shop.ts';

const shop = useShop();

describe('lists inside lists', () => {
  const BLOG = '{ blog(first: 100) { nodes { title creator { username email } } } }';

  test('D22 a hundred entries with their creators take as many statements as two, and at most three besides authentication', async () => {
    const reader = await shop.makeUser({ username: 'reader' });
    const fill = async (count: number) => {
      for (let made = 0; made < count; made++)
        await shop.makeEntry(await shop.makeUser({ password: null }));
    };
    const baseline = await recordStatements(() =>
      shop.graphql('{ __typename }', {}, { as: reader }),
    );
    await fill(2);
    const few = await recordStatements(() => shop.graphql(BLOG, {}, { as: reader }));
    await fill(98);
    const many = await recordStatements(() => shop.graphql(BLOG, {}, { as: reader }));
    expect(many.answer.body.data.blog.nodes).toHaveLength(100);
    expect(
      new Set(many.answer.body.data.blog.nodes.map(({ creator }: Entry) => creator.username)).size,
    ).toBe(100);
    expect(many.statements).toHaveLength(few.statements.length);
    expect(many.statements.length - baseline.statements.length).toBeLessThanOrEqual(3);
  });

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

  test('D22 the next request returns the change', async () => {
    const user = await shop.makeUser({ fullName: 'Ada' });
    const { pk, id } = await shop.makeProduct({ name: 'Lamp' });
    const query = `{ me { fullName items { totalCount } } product(pk: ${pk}) { name } node(id: "${id}") { ... on Product { name } } }`;
    const read = async () => {
      const { me, product, node } = (await shop.graphql(query, {}, { as: user })).body.data;
      return [me.fullName, me.items.totalCount, product.name, node.name];
    };
    for (let round = 0; round < 2; round++)
      expect(await read()).toEqual(['Ada', 0, 'Lamp', 'Lamp']);
    await shop.sql(`update "user" set full_name = 'Grace'`);
    await shop.sql(`update product set name = 'Chair'`);
    await shop.makeItem(user);
    expect(await read()).toEqual(['Grace', 1, 'Chair', 'Chair']);
  });
});

describe('fields that clients may not set', () => {
  const EXTRA = [
    'hashed_password',
    'hashedPassword',
    'disabled',
    'pk',
    'id',
    'scopes',
    'createdAt',
    'creatorPk',
    'creator',
    'ownerPk',
    '__proto__',
    'constructor',
  ];
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

  test.each(['disabled: true', 'hashedPassword: "x"', 'scopes: ["users:read"]', 'pk: 1'])(
    'D24 an undeclared argument is rejected: %s',
    async (argument) => {
      const user = await shop.makeUser();
      const before = await stored();
      for (const field of [
        'addItem(itemId: "lamp", X) { itemId }',
        'changePassword(current: "correct horse battery", new: "other horse", X) { id }',
      ]) {
        const answer = await shop.graphql(
          `mutation { ${field.replace('X', argument)} }`,
          {},
          { as: user },
        );
        expect([answer.status, codes(answer)]).toEqual([400, ['GRAPHQL_VALIDATION_FAILED']]);
      }
      expect(await stored()).toEqual(before);
    },
  );

  test('D24 additional fields of a REST body are rejected or ignored, never stored', async () => {
    const user = await shop.makeUser({ scopes: ['products:write'] });
    const extra = {
      pk: 4711,
      id: 4711,
      createdAt: '2000-01-01',
      hashed_password: 'x',
      disabled: true,
      __proto__: { pk: 4711 },
    };
    const json = { ...extra, name: 'Chair', barcode: '4006381333931', price: 1 };
    const answer = await shop.rest('POST', '/api/v1/shop/product/', { as: user, json });
    expect([201, 422]).toContain(answer.status);
    expect(
      await shop.sql(
        "select * from product where pk = 4711 or created_at < now() - interval '1 day'",
      ),
    ).toEqual([]);
    expect(await shop.sql('select * from "user" where disabled')).toEqual([]);
    expect(answer.text).not.toMatch(/hashed_password|disabled|4711/);
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

interface Entry {
  creator: { username: string };
}
