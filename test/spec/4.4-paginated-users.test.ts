import { expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { PASSWORD, PUBLIC_URL, useShop } from '../support/shop.ts';

const shop = useShop();

const USERS = '/api/users';

test('4.4 GET /api/users?limit=&offset= returns a page of User records', async () => {
  const as = await callerAmong(5);
  const answer = await shop.rest('GET', `${USERS}?limit=2&offset=2`, { as });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual({
    items: [
      { username: 'user 2', email: null, full_name: 'User 2', disabled: false },
      { username: 'user 3', email: null, full_name: 'User 3', disabled: false },
    ],
    count: 5,
    next: `${PUBLIC_URL}${USERS}?limit=2&offset=4`,
    previous: `${PUBLIC_URL}${USERS}?limit=2&offset=0`,
  });
});

test.each(['page=2', 'limit=5&offset=5'])(
  '4.4 GET /api/users?%s that ends with the last user has no next',
  async (query) => {
    const { body } = await shop.rest('GET', `${USERS}?${query}`, { as: await callerAmong(10) });
    expect(body.items).toHaveLength(5);
    expect(body.next).toBeNull();
  },
);

test('4.4 GET /api/users keeps its order when a user is changed', async () => {
  const as = await callerAmong(4);
  await shop.sql(`update "user" set full_name = 'Changed' where username in ('caller', 'user 2')`);
  const { body } = await shop.rest('GET', `${USERS}?page=1`, { as });
  expect(names(body.items)).toEqual(['caller', 'user 1', 'user 2', 'user 3']);
});

test.each(['page=1', 'limit=4'])(
  '4.4 following next from ?%s leads through every user once',
  async (query) => {
    const as = await callerAmong(13);
    const walked: string[] = [];
    for (
      let url: string | null = `${PUBLIC_URL}${USERS}?${query}`;
      url !== null && walked.length < 100;
    ) {
      const { body } = await shop.rest('GET', url.slice(PUBLIC_URL.length), { as });
      walked.push(...names(body.items));
      url = body.next as string | null;
    }
    expect(walked).toEqual([
      'caller',
      ...Array.from({ length: 12 }, (_, index) => `user ${index + 1}`),
    ]);
  },
);

test("4.4 others' email is null to a token without users:read, though the user holds it", async () => {
  const { username } = await shop.makeUser({ scopes: ['users:read', 'blog:write'] });
  await shop.makeUser({ password: null, username: 'bob', email: 'bob@shop.example' });
  const { body: token } = await shop.rest('POST', '/token', {
    form: { username, password: PASSWORD, scope: 'blog:write' },
  });
  const { body } = await shop.rest('GET', USERS, { token: token.access_token });
  expect(body.items[1]).toEqual({ username: 'bob', email: null, full_name: null, disabled: false });
});

/** Creates this many users; returns the first one, the caller. */
async function callerAmong(count: number): Promise<User> {
  const caller = await shop.makeUser({ username: 'caller', password: null, email: null });
  await shop.sql(`
    insert into "user" (username, full_name, email) select 'user ' || n, 'User ' || n, 'user' || n || '@shop.example'
    from generate_series(1, ${count - 1}) as n`);
  return caller;
}

function names(items: { username: string }[]): string[] {
  return items.map(({ username }) => username);
}
