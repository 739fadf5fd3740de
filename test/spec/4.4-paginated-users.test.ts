import { expect, test } from '../support/jest.ts';
import type { Scope } from '../../src/kit/scopes.ts';
import type { User } from '../../src/users/user.entity.ts';
import { PASSWORD, PUBLIC_URL, useShop } from '../support/shop.ts';

const shop = useShop();

const USERS = '/api/users';

test('4.4 GET /api/users?limit=&offset= answers a page of User records', async () => {
  const as = await callerAmong(5);
  const answer = await shop.rest('GET', `${USERS}?limit=2&offset=2`, { as });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
  expect(answer.body).toEqual({
    items: [
      { username: 'user 2', email: null, full_name: null, disabled: false },
      { username: 'user 3', email: null, full_name: null, disabled: false },
    ],
    count: 5,
    next: `${PUBLIC_URL}${USERS}?limit=2&offset=4`,
    previous: `${PUBLIC_URL}${USERS}?limit=2&offset=0`,
  });
});

test('4.4 GET /api/users?page= answers a page of 5 User records', async () => {
  const as = await callerAmong(12);
  const pages = [];
  for (const page of [1, 2, 3]) pages.push((await shop.rest('GET', `${USERS}?page=${page}`, { as })).body);
  expect(pages.map(({ items, ...rest }) => ({ usernames: names(items), ...rest }))).toEqual([
    { usernames: ['caller', 'user 1', 'user 2', 'user 3', 'user 4'], count: 12, next: `${PUBLIC_URL}${USERS}?page=2`, previous: null },
    {
      usernames: ['user 5', 'user 6', 'user 7', 'user 8', 'user 9'],
      count: 12,
      next: `${PUBLIC_URL}${USERS}?page=3`,
      previous: `${PUBLIC_URL}${USERS}?page=1`,
    },
    { usernames: ['user 10', 'user 11'], count: 12, next: null, previous: `${PUBLIC_URL}${USERS}?page=2` },
  ]);
});

test('4.4 GET /api/users without parameters answers the first 100', async () => {
  const as = await callerAmong(101);
  const { body } = await shop.rest('GET', USERS, { as });
  expect(names(body.items)).toEqual(['caller', ...Array.from({ length: 99 }, (_, index) => `user ${index + 1}`)]);
  expect(body).toMatchObject({ count: 101, next: `${PUBLIC_URL}${USERS}?limit=100&offset=100`, previous: null });
});

test.each(['page=2', 'limit=5&offset=5'])('4.4 GET /api/users?%s that ends with the last user has no next', async (query) => {
  const { body } = await shop.rest('GET', `${USERS}?${query}`, { as: await callerAmong(10) });
  expect(body.items).toHaveLength(5);
  expect(body.next).toBeNull();
});

test('4.4 GET /api/users keeps its order when a user is changed', async () => {
  const as = await callerAmong(4);
  await shop.sql(`update "user" set full_name = 'Changed' where username in ('caller', 'user 2')`);
  const { body } = await shop.rest('GET', `${USERS}?page=1`, { as });
  expect(names(body.items)).toEqual(['caller', 'user 1', 'user 2', 'user 3']);
});

test('4.4 the links of GET /api/users stand in the Link header, too', async () => {
  const as = await callerAmong(12);
  const { headers } = await shop.rest('GET', `${USERS}?page=2`, { as });
  expect(headers.get('link')).toBe(`<${PUBLIC_URL}${USERS}?page=3>; rel="next", <${PUBLIC_URL}${USERS}?page=1>; rel="prev"`);
});

test.each(['page=1', 'limit=4'])('4.4 following next from ?%s leads through every user once', async (query) => {
  const as = await callerAmong(13);
  const walked: string[] = [];
  for (let url: string | null = `${PUBLIC_URL}${USERS}?${query}`; url !== null && walked.length < 100;) {
    const { body } = await shop.rest('GET', url.slice(PUBLIC_URL.length), { as });
    walked.push(...names(body.items));
    url = body.next as string | null;
  }
  expect(walked).toEqual(['caller', ...Array.from({ length: 12 }, (_, index) => `user ${index + 1}`)]);
});

test('4.4 the links of GET /api/users start with PUBLIC_URL, whatever Host is sent', async () => {
  const token = shop.tokenOf(await callerAmong(12));
  const answer = await shop.raw(
    `GET ${USERS}?page=2 HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
  );
  expect(answer).toContain(`"next":"${PUBLIC_URL}${USERS}?page=3","previous":"${PUBLIC_URL}${USERS}?page=1"`);
  expect(answer).not.toContain('evil.example');
});

test('4.4 GET /api/users is refused without credentials', async () => {
  const answer = await shop.rest('GET', USERS);
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  expect(answer.body).toEqual({ detail: 'Not authenticated' });
});

test('4.4 GET /api/users is refused with a token that is not good', async () => {
  const answer = await shop.rest('GET', USERS, { token: 'expired' });
  expect(answer.status).toBe(401);
  expect(answer.body).toEqual({ detail: 'Could not validate credentials' });
});

test('4.4 GET /api/users takes a session key, too', async () => {
  const { username } = await shop.makeUser();
  const { body } = await shop.rest('POST', '/session/login', { json: { username, password: PASSWORD } });
  const answer = await shop.rest('GET', USERS, { sessionKey: body.session_key });
  expect(answer.status).toBe(200);
  expect(names(answer.body.items)).toEqual([username]);
});

test("4.4 others' email is null without users:read, one's own is not", async () => {
  const as = await shop.makeUser({ password: null, username: 'ann', email: 'ann@shop.example', scopes: ['products:write', 'blog:write'] });
  await shop.makeUser({ password: null, username: 'bob', email: 'bob@shop.example', fullName: 'Bob Baker' });
  const { body } = await shop.rest('GET', USERS, { as });
  expect(body.items).toEqual([
    { username: 'ann', email: 'ann@shop.example', full_name: null, disabled: false },
    { username: 'bob', email: null, full_name: 'Bob Baker', disabled: false },
  ]);
});

test("4.4 others' email is shown with users:read", async () => {
  const as = await shop.makeUser({ password: null, scopes: ['users:read'] });
  await shop.makeUser({ password: null, username: 'bob', email: 'bob@shop.example' });
  const { body } = await shop.rest('GET', USERS, { as });
  expect(body.items[1]).toEqual({ username: 'bob', email: 'bob@shop.example', full_name: null, disabled: false });
});

test("4.4 others' email is null to a token without users:read, though the user holds it", async () => {
  const { username } = await shop.makeUser({ scopes: ['users:read', 'blog:write'] });
  await shop.makeUser({ password: null, username: 'bob', email: 'bob@shop.example' });
  const { body: token } = await shop.rest('POST', '/token', { form: { username, password: PASSWORD, scope: 'blog:write' } });
  const { body } = await shop.rest('GET', USERS, { token: token.access_token });
  expect(body.items[1]).toEqual({ username: 'bob', email: null, full_name: null, disabled: false });
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])('4.4 /api/users handles only GET, not %s', async (method) => {
  const answer = await shop.rest(method, USERS, { as: await callerAmong(1) });
  expect(answer.status).toBe(405);
  expect(answer.headers.get('allow')).toBe('GET, OPTIONS');
  expect(answer.body).toEqual({ detail: `Method "${method}" not allowed.` });
});

/** A signed-in caller, who is the first of this many users. */
async function callerAmong(count: number, scopes: Scope[] = []): Promise<User> {
  const caller = await shop.makeUser({ username: 'caller', password: null, email: null, scopes });
  await shop.sql(
    `insert into "user" (username, email) select 'user ' || n, 'user' || n || '@shop.example' from generate_series(1, ${count - 1}) as n`,
  );
  return caller;
}

function names(items: { username: string }[]): string[] {
  return items.map(({ username }) => username);
}
