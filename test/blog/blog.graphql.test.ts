import { describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { walkFiveByTwos } from '../support/paging.ts';
import { codes, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

const ALL_FIELDS = 'id title body published creator { username email } createdAt updatedAt';
const BLOG = `query ($first: Int, $after: String, $last: Int, $before: String) {
  blog(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    edges { cursor }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    nodes { title }
  }
}`;
const CREATE = `mutation ($input: BlogEntryInput!) { createBlogEntry(input: $input) { ${ALL_FIELDS} } }`;
const UPDATE = `mutation ($id: ID!, $input: BlogEntryPatch!) { updateBlogEntry(id: $id, input: $input) { ${ALL_FIELDS} } }`;
const DELETE = `mutation ($id: ID!) { deleteBlogEntry(id: $id) { ${ALL_FIELDS} } }`;

describe('GraphQL contract, blog', () => {
  test("it has published entries and the caller's own drafts, the latest first", async () => {
    const [ada, max] = [await makeWriter('ada'), await makeWriter('max')];
    await shop.makeEntry(max, { title: 'second', createdAt: day(2) });
    await shop.makeEntry(ada, { title: 'draft of ada', createdAt: day(4), published: false });
    await shop.makeEntry(ada, { title: 'first', createdAt: day(1) });
    await shop.makeEntry(max, { title: 'draft of max', createdAt: day(3), published: false });
    expect(await titlesFor(ada)).toEqual(['draft of ada', 'second', 'first']);
    expect(await titlesFor(max)).toEqual(['draft of max', 'second', 'first']);
    const admin = await shop.makeUser({ scopes: ['products:write', 'users:read', 'blog:write'] });
    expect(await titlesFor(admin)).toEqual(['second', 'first']);
  });

  test('an entry has all fields, and its creator the email', async () => {
    const entry = await shop.makeEntry(
      await shop.makeUser({ username: 'ada', email: 'ada@shop.example' }),
      {
        title: 'Hello',
        body: 'One.\nTwo.',
      },
    );
    const answer = await shop.graphql(
      `{ blog { nodes { ${ALL_FIELDS} } } }`,
      {},
      { as: await shop.makeUser() },
    );
    expect(answer.body.data.blog.nodes).toEqual([
      {
        id: entry.id,
        title: 'Hello',
        body: 'One.\nTwo.',
        published: true,
        creator: { username: 'ada', email: 'ada@shop.example' },
        createdAt: entry.createdAt.toISOString(),
        updatedAt: entry.updatedAt.toISOString(),
      },
    ]);
  });

  test('the email is shown only where the user is a creator', async () => {
    const reader = await shop.makeUser({ username: 'max', email: null });
    const ada = await makeWriter('ada');
    await shop.makeEntry(ada);
    const query =
      '{ blog { nodes { creator { email scopes } } } users { nodes { username email } } }';
    const answer = await shop.graphql(query, {}, { as: reader });
    expect(answer.body.data).toEqual({
      blog: { nodes: [{ creator: { email: 'ada@shop.example', scopes: [] } }] },
      users: {
        nodes: [
          { username: 'max', email: null },
          { username: 'ada', email: null },
        ],
      },
    });
  });

  test('pages forward and back, to both ends, are the whole list, entries of one instant by pk', async () => {
    const ada = await makeWriter();
    for (const title of ['a', 'b', 'c']) await shop.makeEntry(ada, { title, createdAt: day(1) });
    await shop.makeEntry(ada, { title: 'e', createdAt: day(3) });
    await shop.makeEntry(ada, { title: 'd', createdAt: day(2) });
    const page = async (args: object) =>
      (await shop.graphql(BLOG, { ...args }, { as: ada })).body.data.blog;

    expect((await walkFiveByTwos(page)).map(titlesOf)).toEqual([
      ['e', 'd'],
      ['c', 'b'],
      ['a'],
      ['c', 'b'],
      ['e', 'd'],
    ]);
  });

  test('a cursor stays valid while entries are added and deleted', async () => {
    const ada = await makeWriter();
    for (const [index, title] of ['a', 'b', 'c', 'd'].entries())
      await shop.makeEntry(ada, { title, createdAt: day(index + 1) });
    const { endCursor } = (await shop.graphql(BLOG, { first: 2 }, { as: ada })).body.data.blog
      .pageInfo;
    await shop.makeEntry(ada, { title: 'e', createdAt: day(9) });
    await shop.sql(`delete from blog_entry where title = 'c'`);
    expect(
      titlesOf(
        (await shop.graphql(BLOG, { first: 9, after: endCursor }, { as: ada })).body.data.blog,
      ),
    ).toEqual(['b', 'a']);
  });

  test.each([
    [{ first: 0 }, 'first'],
    [{ last: 101 }, 'last'],
    [{ after: 'x' }, 'after'],
  ])('%j is BAD_USER_INPUT', async (args, field) => {
    const answer = await shop.graphql(BLOG, args, { as: await shop.makeUser() });
    expect(answer.body.errors[0].extensions).toEqual(badInput(field));
  });
});

describe('GraphQL contract, User.blog', () => {
  test("it has the user's entries that the caller may see", async () => {
    const [ada, max] = [await makeWriter('ada'), await makeWriter('max')];
    await shop.makeEntry(ada, { title: 'of ada', createdAt: day(1) });
    await shop.makeEntry(ada, { title: 'draft of ada', createdAt: day(2), published: false });
    await shop.makeEntry(max, { title: 'of max' });
    const query = '{ users { nodes { username blog { totalCount nodes { title } } } } }';
    const [forAda, forMax] = [
      await shop.graphql(query, {}, { as: ada }),
      await shop.graphql(query, {}, { as: max }),
    ];
    expect(forAda.body.data.users.nodes).toEqual([
      {
        username: 'ada',
        blog: { totalCount: 2, nodes: [{ title: 'draft of ada' }, { title: 'of ada' }] },
      },
      { username: 'max', blog: { totalCount: 1, nodes: [{ title: 'of max' }] } },
    ]);
    expect(forMax.body.data.users.nodes[0]).toEqual({
      username: 'ada',
      blog: { totalCount: 1, nodes: [{ title: 'of ada' }] },
    });
  });
});

describe('GraphQL contract, createBlogEntry', () => {
  test('it stores a draft and returns it', async () => {
    const before = shop.now();
    const ada = await makeWriter('ada');
    const answer = await create(ada, { title: ' Hello ', body: ' One.\n\tTwo. ' });
    const { id, createdAt } = answer.body.data.createBlogEntry;
    expect(answer.body.data.createBlogEntry).toEqual({
      id,
      title: 'Hello',
      body: ' One.\n\tTwo. ',
      published: false,
      creator: { username: 'ada', email: 'ada@shop.example' },
      createdAt,
      updatedAt: createdAt,
    });
    expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(before.getTime());
    expect(
      (await shop.graphql(`{ blog { nodes { ${ALL_FIELDS} } } }`, {}, { as: ada })).body.data.blog
        .nodes,
    ).toEqual([answer.body.data.createBlogEntry]);
  });

  test('with published it is published at once, otherwise once it is updated', async () => {
    const [ada, reader] = [await makeWriter(), await shop.makeUser()];
    await create(ada, { title: 'Hello', body: 'Text.', published: true });
    const draft = await create(ada, { title: 'Later', body: 'Text.' });
    expect(await titlesFor(reader)).toEqual(['Hello']);
    await update(ada, draft.body.data.createBlogEntry.id, { published: true });
    expect(await titlesFor(reader)).toEqual(['Later', 'Hello']);
  });

  test('without credentials it is UNAUTHENTICATED, without blog:write FORBIDDEN, and the scope is named', async () => {
    const input = { title: 'Hello', body: 'Text.' };
    const anonymous = await shop.graphql(CREATE, { input });
    const reader = await create(
      await shop.makeUser({ scopes: ['products:write', 'users:read'] }),
      input,
    );
    expect([codes(anonymous), codes(reader)]).toEqual([['UNAUTHENTICATED'], ['FORBIDDEN']]);
    expect(reader.body.errors[0].message).toContain('blog:write');
    expect(await stored()).toEqual([]);
  });
});

describe('GraphQL contract, updateBlogEntry', () => {
  test.each([
    ['title', ' Goodbye ', 'Goodbye'],
    ['body', 'Other text.', 'Other text.'],
    ['published', false, false],
  ])('its creator changes only the %s', async (field, value, expected) => {
    const ada = await makeWriter('ada');
    const entry = await shop.makeEntry(ada, { title: 'Hello', body: 'Text.' });
    shop.advanceClock(60_000);
    const before = shop.now();
    const answer = await update(ada, entry.id, { [field]: value });
    const { updatedAt } = answer.body.data.updateBlogEntry;
    expect(answer.body.data.updateBlogEntry).toEqual({
      id: entry.id,
      title: 'Hello',
      body: 'Text.',
      published: true,
      creator: { username: 'ada', email: 'ada@shop.example' },
      createdAt: entry.createdAt.toISOString(),
      updatedAt,
      [field]: expected,
    });
    expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(before.getTime());
    expect(
      (await shop.graphql(`{ blog { nodes { ${ALL_FIELDS} } } }`, {}, { as: ada })).body.data.blog
        .nodes,
    ).toEqual([answer.body.data.updateBlogEntry]);
  });

  test.each([
    ['of a deleted entry', deletedEntry],
    ['of another type', async () => (await shop.makeProduct()).id],
    ['that is invalid', async () => 'x'],
    ['that is empty', async () => ''],
  ])('an id %s is NOT_FOUND', async (_name, id) => {
    const ada = await makeWriter();
    const answer = await update(ada, await id(ada), { title: 'Mine' });
    expect([answer.body.data, codes(answer)]).toEqual([null, ['NOT_FOUND']]);
  });
});

describe('GraphQL contract, createBlogEntry and updateBlogEntry', () => {
  test.each([
    ['a title that is empty', { title: '  ' }, 'title'],
    ['a title of 256 characters', { title: 'x'.repeat(256) }, 'title'],
    ['a title of two lines', { title: 'a\nb' }, 'title'],
    ['a body that is empty', { body: '' }, 'body'],
    ['a body of 50,001 characters', { body: 'x'.repeat(50_001) }, 'body'],
    ['a body with a NUL', { body: 'a\0b' }, 'body'],
    ['a body with half a character', { body: 'a\ud800' }, 'body'],
  ])('%s is BAD_USER_INPUT', async (_name, input, field) => {
    const ada = await makeWriter();
    const { id } = await shop.makeEntry(ada, { title: 'Hello' });
    for (const { body } of [
      await create(ada, { title: 'Bye', body: 'Text.', ...input }),
      await update(ada, id, input),
    ])
      expect(body.errors[0].extensions).toEqual(badInput(field));
    expect(await stored()).toEqual(['Hello']);
  });
});

describe('GraphQL contract, deleteBlogEntry', () => {
  test('its creator deletes it, and gets the deleted entry', async () => {
    const ada = await makeWriter('ada');
    const entry = await shop.makeEntry(ada, { title: 'Hello', body: 'Text.', published: false });
    await shop.makeEntry(ada, { title: 'Other' });
    const answer = await shop.graphql(DELETE, { id: entry.id }, { as: ada });
    expect(answer.body.data.deleteBlogEntry).toEqual({
      id: entry.id,
      title: 'Hello',
      body: 'Text.',
      published: false,
      creator: { username: 'ada', email: 'ada@shop.example' },
      createdAt: entry.createdAt.toISOString(),
      updatedAt: entry.updatedAt.toISOString(),
    });
    expect(await stored()).toEqual(['Other']);
  });
});

test.each([
  ['updateBlogEntry', (as: User, id: string) => update(as, id, { title: 'Mine' })],
  ['deleteBlogEntry', (as: User, id: string) => shop.graphql(DELETE, { id }, { as })],
])(
  'GraphQL contract, %s: a published entry of someone else is FORBIDDEN, a draft NOT_FOUND',
  async (_mutation, change) => {
    const ada = await makeWriter();
    const as = await shop.makeUser({ scopes: ['products:write', 'users:read', 'blog:write'] });
    const entry = await shop.makeEntry(ada, { title: 'Hello' });
    const draft = await shop.makeEntry(ada, { title: 'Draft', published: false });
    const answers = [await change(as, entry.id), await change(as, draft.id)];
    expect(answers.map(codes)).toEqual([['FORBIDDEN'], ['NOT_FOUND']]);
    expect(await stored()).toEqual(['Hello', 'Draft']);
  },
);

async function deletedEntry(creator: User): Promise<string> {
  const { id } = await shop.makeEntry(creator);
  await shop.sql('delete from blog_entry');
  return id;
}

function makeWriter(username?: string): Promise<User> {
  return shop.makeUser({ ...(username && { username }), scopes: ['blog:write'] });
}

function day(number: number): Date {
  return new Date(Date.UTC(2026, 0, number));
}

function create(as: User, input: object): Promise<Answer> {
  return shop.graphql(CREATE, { input }, { as });
}

function update(as: User, id: string, input: object): Promise<Answer> {
  return shop.graphql(UPDATE, { id, input }, { as });
}

async function titlesFor(as: User): Promise<string[]> {
  return titlesOf((await shop.graphql(BLOG, {}, { as })).body.data.blog);
}

function titlesOf({ nodes }: { nodes: { title: string }[] }): string[] {
  return nodes.map(({ title }) => title);
}

async function stored(): Promise<unknown[]> {
  return (await shop.sql('select title from blog_entry order by pk')).map((row) => row['title']);
}

function badInput(field: string) {
  return { code: 'BAD_USER_INPUT', fields: [{ field, message: expect.any(String) }] };
}
