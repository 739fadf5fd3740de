import { expect, test } from '../support/jest.ts';
import { makeDatabase } from '../support/databases.ts';
import { Shop } from '../support/shop.ts';
import { compare, expectAtMost } from '../support/timing.ts';

const PAGES = '/api/v2/shop/products';
const DEEP = 1_000_000;
/** Number of products after the deepest page. */
const BEHIND = 2_000;
const ROUNDS = 42;
/** Maximum ratio to the first page. Skipping a million rows would exceed it by far. */
const MAX_RATIO = 20;
/** Maximum time of the test, in ms: creating a million products is slow. */
const TIMEOUT_MS = 1_200_000;

test(
  'Q7 a page at offset one million takes about as long as the first',
  async () => {
    const made = await makeDatabase(`shopfront_deep_${process.pid}`);
    const shop = await new Shop({ ...made.env, REQUEST_TIMEOUT_MS: '600000' }).start();
    try {
      await fill(shop, DEEP + BEHIND);
      for (const deep of [
        (attempt: number) => `limit=10&offset=${DEEP + attempt}`,
        (attempt: number) => `page=${DEEP / 10 + 1 + attempt}`,
      ]) {
        // A different page each time, so that no cache favors one side.
        const comparison = await compare(
          (attempt) => timeOf(shop, `limit=10&offset=${attempt}`, 10),
          (attempt) => timeOf(shop, deep(attempt), 10),
          ROUNDS,
        );
        expectAtMost(comparison, MAX_RATIO);
      }
      const { body } = await shop.rest('GET', `${PAGES}?limit=10&offset=${DEEP}`);
      expect(body.count).toBe(DEEP + BEHIND);
      expect((body.items as { pk: number }[]).map(({ pk }) => pk)).toEqual(
        Array.from({ length: 10 }, (_, index) => DEEP + 1 + index),
      );
    } finally {
      await shop.stop();
      await made.drop();
    }
  },
  TIMEOUT_MS,
);

async function fill(shop: Shop, count: number): Promise<void> {
  // 400, nine digits of the number, and the check digit.
  const digit = (place: number) => `(n / ${10 ** place} % 10)`;
  const odd = [7, 5, 3, 1].map(digit).join(' + ');
  const even = [8, 6, 4, 2, 0].map(digit).join(' + ');
  await shop.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Product ' || n, '400' || lpad(n::text, 9, '0') || (10 - (4 + ${odd} + 3 * (${even})) % 10) % 10, 1, now(), now()
    from generate_series(1, ${count}) as n`);
  await shop.sql('analyze');
}

async function timeOf(shop: Shop, query: string, items: number): Promise<number> {
  const start = performance.now();
  const { body } = await shop.rest('GET', `${PAGES}?${query}`);
  const time = performance.now() - start;
  expect(body.items).toHaveLength(items);
  return time;
}
