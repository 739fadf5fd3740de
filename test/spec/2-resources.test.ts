import { expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

test('2 User.hashed_password is internal: a login does not accept it as a password', async () => {
  const { username, hashedPassword } = await shop.makeUser();
  const answer = await shop.rest('POST', '/token', {
    form: { username, password: String(hashedPassword) },
  });
  expect(answer.status).toBe(401);
});
