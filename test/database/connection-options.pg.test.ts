import { expect, test } from '../support/jest.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop({ REQUEST_TIMEOUT_MS: '7000' });

test.each([
  ['jit', 'off'],
  ['statement_timeout', '7s'],
  ['application_name', 'shopfront'],
])('each connection to a server sets %s to %s', async (name, value) => {
  const { statements } = shop.database;
  const show = { text: `select current_setting('${name}') as value`, values: [] };
  expect(await statements.read(show)).toEqual([{ value }]);
  expect(await statements.read(show, true)).toEqual([{ value }]);
});
