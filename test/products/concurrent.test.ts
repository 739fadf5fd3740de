import { beforeEach, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { useShop } from '../support/shop.ts';

// No shared comparison, because these requests race.
const shop = useShop();

const AT_ONCE = 100;

let user: User;

beforeEach(async () => {
  user = await shop.makeUser({ scopes: ['products:write'] });
});

test('C1 a hundred concurrent creations with one barcode create one product; all others get 409', async () => {
  const json = { name: 'Tray', barcode: shop.newBarcode(), price: 1 };
  const answers = await Promise.all(
    Array.from({ length: AT_ONCE }, () => shop.rest('POST', PATH, { as: user, json })),
  );
  expect(Map.groupBy(answers, ({ status }) => status).get(201)).toHaveLength(1);
  expect(answers.filter(({ status }) => status === 409)).toHaveLength(AT_ONCE - 1);
  expect(await shop.sql('select barcode from product')).toEqual([{ barcode: json.barcode }]);
});

test('P14 a creation rejected with 409 uses no primary key', async () => {
  const json = { name: 'Tray', barcode: shop.newBarcode(), price: 1 };
  const made = await shop.rest('POST', PATH, { as: user, json });
  for (let count = 0; count < 20; count++)
    expect((await shop.rest('POST', PATH, { as: user, json })).status).toBe(409);
  const next = await shop.rest('POST', PATH, {
    as: user,
    json: { ...json, barcode: shop.newBarcode() },
  });
  expect(next.body.pk - made.body.pk).toBe(1);
});

test('C2 a hundred concurrent creations are a hundred products, each with its own pk', async () => {
  const answers = await Promise.all(
    Array.from({ length: AT_ONCE }, () => {
      const json = { name: 'Tray', barcode: shop.newBarcode(), price: 1 };
      return shop.rest('POST', PATH, { as: user, json });
    }),
  );
  expect(answers.every(({ status }) => status === 201)).toBe(true);
  expect(new Set(answers.map(({ body }) => body.pk as number)).size).toBe(AT_ONCE);
  expect(await shop.sql('select count(*)::int as count from product')).toEqual([
    { count: AT_ONCE },
  ]);
});

const PATH = '/api/v1/shop/product/';
