import { expect, test } from '../support/jest.ts';
import { PASSWORD, useShop } from '../support/shop.ts';

const shop = useShop();

const USERS = '/api/users';

test("4.4 others' email is null to a token without users:read, though the user holds it", async () => {
  const { username } = await shop.makeUser({ scopes: ['users:read', 'blog:write'] });
  await shop.makeUser({ password: null, username: 'bob', email: 'bob@shop.example' });
  const { body: token } = await shop.rest('POST', '/token', {
    form: { username, password: PASSWORD, scope: 'blog:write' },
  });
  const { body } = await shop.rest('GET', USERS, { token: token.access_token });
  expect(body.items[1]).toEqual({ username: 'bob', email: null, full_name: null, disabled: false });
});
