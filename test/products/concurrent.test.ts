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

test('a primary key that is taken is no conflict of the client', async () => {
  const create = () =>
    shop.rest('POST', PATH, {
      as: user,
      json: { name: 'Tray', barcode: shop.newBarcode(), price: 1 },
    });
  const addItem = (itemId: string) =>
    shop.graphql(
      'mutation ($itemId: String!) { addItem(itemId: $itemId) { itemId } }',
      { itemId },
      { as: user },
    );
  const { body } = await create();
  await addItem('first');
  await shop.sql(`
    select setval(pg_get_serial_sequence('product', 'pk'), ${body.pk}, false),
      setval(pg_get_serial_sequence('item', 'pk'), (select max(pk) from item), false)`);
  const outcomes = [
    (await create()).status,
    (await addItem('second')).body.errors[0].extensions.code,
  ];
  // Each failed attempt has used up a key.
  expect(outcomes).toEqual([500, 'INTERNAL_SERVER_ERROR']);
  expect((await create()).status).toBe(201);
  expect((await addItem('second')).body.errors).toBeUndefined();
});

const PATH = '/api/v1/shop/product/';
