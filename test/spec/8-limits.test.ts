import { afterAll, beforeAll, describe, expect, test } from '../support/jest.ts';
import type { User } from '../../src/features/users/user.entity.ts';
import { Shop, useShop } from '../support/shop.ts';

const shop = useShop();

const PAGES = '/api/v2/shop/products';
const USERS = '/api/users';

let caller: User;

// Limit and offset

describe('with DEFAULT_PAGE_SIZE', () => {
  const small = new Shop({ DEFAULT_PAGE_SIZE: '3' });
  beforeAll(() => small.start());
  afterAll(() => small.stop());

  test.each([`${PAGES}?offset=0`, `${USERS}?offset=0`, USERS])(
    '8 GET %s: the default page size is a configuration setting',
    async (path) => {
      await make(5);
      const { body } = await small.rest('GET', path, { as: caller });
      expect(body.items).toHaveLength(3);
    },
  );
});

// Bad pagination

const INTEGER = { type: 'int_parsing', msg: 'Input should be a valid integer' };
const below = (least: number) => ({
  type: 'greater_than_equal',
  msg: `Input should be greater than or equal to ${least}`,
});
const TWICE = { type: expect.any(String), msg: expect.any(String) };
const BOTH = { type: 'value_error', loc: ['query'], msg: 'Give either page, or limit and offset' };

test.each<[string, ...object[]]>([
  ['limit=abc', { ...INTEGER, loc: ['query', 'limit'] }],
  [
    'limit=0&offset=',
    { ...below(1), loc: ['query', 'limit'] },
    { ...INTEGER, loc: ['query', 'offset'] },
  ],
  ['offset=-1', { ...below(0), loc: ['query', 'offset'] }],
  ['page=1&page=1', { ...TWICE, loc: ['query', 'page'] }],
  ['page=1&limit=5', BOTH],
])('8 ?%s is rejected with 422, which names each error', async (query, ...detail) => {
  await make(1);
  for (const path of [PAGES, USERS]) {
    const { status, body } = await shop.rest('GET', `${path}?${query}`, { as: caller });
    expect([path, status, body]).toEqual([path, 422, { detail }]);
  }
});

/** Creates this many products and users; the first user is the caller. */
async function make(count: number): Promise<void> {
  caller = await shop.makeUser({ password: null });
  await shop.sql(
    `insert into "user" (username) select 'extra ' || n from generate_series(1, ${count - 1}) as n`,
  );
  const barcodes = Array.from({ length: count }, () => `'${shop.newBarcode()}'`).join();
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Tray', barcode, 1, now(), now() from unnest(array[${barcodes}]) as barcode`);
}
