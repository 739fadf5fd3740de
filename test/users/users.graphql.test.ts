import { describe, expect, test } from '../support/jest.ts';
import { createAccessToken } from '../../src/features/auth/tokens/token.ts';
import { walkFiveByTwos } from '../support/paging.ts';
import type { Scope } from '../../src/core/scopes.ts';
import { PASSWORD, useShop, type RequestOptions } from '../support/shop.ts';

const shop = useShop();

const USERS = `query ($first: Int, $after: String, $last: Int, $before: String) {
  users(first: $first, after: $after, last: $last, before: $before) {
    totalCount
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    edges { cursor node { username } }
    nodes { username }
  }
}`;

describe('GraphQL contract, scopes', () => {
  const SCOPES = '{ scopes me { scopes } }';
  const open = useShop({ ANONYMOUS_SCOPES: 'blog:write' });

  test('they are the scopes of the user that the credentials include', async () => {
    const held: Scope[] = ['products:write', 'users:read', 'blog:write'];
    const user = await shop.makeUser({ username: 'ada', scopes: held });
    const narrowed = createAccessToken(shop.context(), {
      username: 'ada',
      scopes: ['blog:write', 'audit:read'],
    });
    const login = await shop.graphql(
      `mutation { login(username: "ada", password: "${PASSWORD}", scopes: ["users:read"]) { sessionKey } }`,
    );
    const { sessionKey } = login.body.data.login;
    const input = '{ name: "till", scopes: ["products:write"] }';
    const made = await shop.graphql(
      `mutation { createApiKey(input: ${input}) { key } }`,
      {},
      { as: user },
    );
    const usable: [RequestOptions, string[]][] = [
      [{ as: user }, held],
      [{ token: narrowed }, ['blog:write']],
      [{ sessionKey }, ['users:read']],
      [{ token: made.body.data.createApiKey.key }, ['products:write']],
    ];
    for (const [credentials, scopes] of usable) {
      const { body } = await shop.graphql(SCOPES, {}, credentials);
      expect(body).toEqual({ data: { scopes, me: { scopes: held } } });
    }
  });

  test('without credentials they are ANONYMOUS_SCOPES, which a signed-in user does not get', async () => {
    expect((await shop.graphql(SCOPES)).body).toEqual({ data: { scopes: [], me: null } });
    expect((await open.graphql(SCOPES)).body).toEqual({
      data: { scopes: ['blog:write'], me: null },
    });
    const user = await open.makeUser({ scopes: [] });
    expect((await open.graphql(SCOPES, {}, { as: user })).body).toEqual({
      data: { scopes: [], me: { scopes: [] } },
    });
  });
});

describe('GraphQL contract, me', () => {
  test('it is the signed-in user, with all fields', async () => {
    await shop.makeUser();
    const user = await shop.makeUser({
      username: 'ada',
      email: 'ada@shop.example',
      fullName: 'Ada Löwe',
      scopes: ['products:write', 'blog:write'],
    });
    const answer = await shop.graphql(
      '{ me { id username email fullName disabled scopes } }',
      {},
      { as: user },
    );
    expect(answer.body).toEqual({
      data: {
        me: {
          id: user.id,
          username: 'ada',
          email: 'ada@shop.example',
          fullName: 'Ada Löwe',
          disabled: false,
          scopes: ['products:write', 'blog:write'],
        },
      },
    });
  });

  test('missing email and fullName are null', async () => {
    const user = await shop.makeUser({ email: null });
    const answer = await shop.graphql('{ me { email fullName scopes } }', {}, { as: user });
    expect(answer.body).toEqual({ data: { me: { email: null, fullName: null, scopes: [] } } });
  });
});

describe('GraphQL contract, users', () => {
  test('any signed-in caller gets all users, also disabled ones, by pk', async () => {
    const reader = await shop.makeUser({ username: 'max' });
    await shop.makeUser({ username: 'zoe', disabled: true, fullName: 'Zoe' });
    await shop.makeUser({ username: 'ada' });
    const answer = await shop.graphql(
      '{ users { totalCount nodes { username fullName disabled } } }',
      {},
      { as: reader },
    );
    expect(answer.body.data.users).toEqual({
      totalCount: 3,
      nodes: [
        { username: 'max', fullName: null, disabled: false },
        { username: 'zoe', fullName: 'Zoe', disabled: true },
        { username: 'ada', fullName: null, disabled: false },
      ],
    });
  });

  test('pages forward and back, to both ends, are the whole list', async () => {
    const reader = await shop.makeUser({ username: 'a' });
    for (const username of ['b', 'c', 'd', 'e']) await shop.makeUser({ username });
    const page = async (args: object) =>
      (await shop.graphql(USERS, { ...args }, { as: reader })).body.data.users;

    expect((await walkFiveByTwos(page)).map(namesOf)).toEqual([
      ['a', 'b'],
      ['c', 'd'],
      ['e'],
      ['c', 'd'],
      ['a', 'b'],
    ]);
  });

  test.each([
    [{ first: 0 }, 'first'],
    [{ last: 101 }, 'last'],
    [{ after: 'x' }, 'after'],
    [{ last: 1, before: '' }, 'before'],
  ])('%j is BAD_USER_INPUT', async (args, field) => {
    const answer = await shop.graphql(USERS, args, { as: await shop.makeUser() });
    expect(answer.body.errors[0].extensions).toEqual({
      code: 'BAD_USER_INPUT',
      fields: [{ field, message: expect.any(String) }],
    });
  });
});

describe('GraphQL contract, User: what a caller sees of others', () => {
  const SEEN = '{ users { nodes { username email scopes } } }';
  const ADA = { username: 'ada', email: 'ada@shop.example', scopes: ['blog:write'] };

  test('Q10 email and scopes are visible only for the own account', async () => {
    const reader = await shop.makeUser({
      username: 'max',
      email: 'max@shop.example',
      scopes: ['products:write'],
    });
    await makeAda();
    const answer = await shop.graphql(SEEN, {}, { as: reader });
    expect(answer.body.data.users.nodes).toEqual([
      { username: 'max', email: 'max@shop.example', scopes: ['products:write'] },
      { username: 'ada', email: null, scopes: [] },
    ]);
  });

  test('Q10 with users:read they are visible for all', async () => {
    const reader = await shop.makeUser({ username: 'max', email: null, scopes: ['users:read'] });
    await makeAda();
    const answer = await shop.graphql(SEEN, {}, { as: reader });
    expect(answer.body.data.users.nodes).toEqual([
      { username: 'max', email: null, scopes: ['users:read'] },
      ADA,
    ]);
  });

  test('a token without the scope does not see what its user may see', async () => {
    const { username } = await shop.makeUser({
      username: 'max',
      email: null,
      scopes: ['users:read', 'blog:write'],
    });
    await makeAda();
    const token = createAccessToken(shop.context(), { username, scopes: ['blog:write'] });
    const answer = await shop.graphql(SEEN, {}, { token });
    expect(answer.body.data.users.nodes[1]).toEqual({ username: 'ada', email: null, scopes: [] });
  });

  const makeAda = () =>
    shop.makeUser({ username: 'ada', email: 'ada@shop.example', scopes: ['blog:write'] });
});

function namesOf({ nodes }: { nodes: { username: string }[] }): string[] {
  return nodes.map(({ username }) => username);
}
