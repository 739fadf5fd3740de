import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop, type Answer } from '../support/shop.ts';

const shop = useShop();

test('2 User.disabled is true for an inactive user', async () => {
  const caller = await shop.makeUser({ username: 'ann', scopes: ['users:read'] });
  await shop.makeUser({ username: 'zoe', email: null, disabled: true });
  const answer = await shop.rest('GET', '/api/users?limit=1&offset=1', { as: caller });
  expect(answer.body.items).toEqual([
    { username: 'zoe', email: null, full_name: null, disabled: true },
  ]);
});

test('2 User.hashed_password is never returned by GraphQL, nor its name or value', async () => {
  const user = await shop.makeUser({ scopes: ['users:read'] });
  const answer = await shop.graphql(
    '{ me { username } __schema { types { name fields { name } } } }',
    {},
    { as: user },
  );
  expect(answer.status).toBe(200);
  expect(answer.text).toContain(user.username);
  expect(whole(answer)).not.toMatch(/hashed_?password/i);
  expect(whole(answer)).not.toContain(user.hashedPassword);
});

test.each(['/token', '/login'])(
  '2 User.hashed_password is never returned by POST %s',
  async (path) => {
    const user = await shop.makeUser();
    const answer = await shop.rest('POST', path, {
      form: { username: user.username, password: PASSWORD },
    });
    expect(answer.status).toBe(200);
    expect(whole(answer)).not.toContain(user.hashedPassword);
  },
);

test('2 User.hashed_password is internal: a login does not accept it as a password', async () => {
  const { username, hashedPassword } = await shop.makeUser();
  const answer = await shop.rest('POST', '/token', {
    form: { username, password: String(hashedPassword) },
  });
  expect(answer.status).toBe(401);
});

function whole({ headers, text }: Answer): string {
  return JSON.stringify([...headers]) + text;
}
