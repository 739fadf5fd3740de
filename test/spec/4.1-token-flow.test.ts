import { expect, test } from '@jest/globals';
import { PASSWORD, useShop } from '../support/shop.ts';

const shop = useShop();

test('4.1 POST /token answers access_token and token_type to a form with username and password', async () => {
  const { username } = await shop.makeUser();
  const answer = await shop.rest('POST', '/token', { form: { username, password: PASSWORD } });
  expect(answer.status).toBe(200);
  expect(answer.body).toEqual({ access_token: expect.any(String), token_type: 'bearer' });
});
