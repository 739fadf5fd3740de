import { afterAll, beforeAll, expect, test } from '../support/jest.ts';
import { Shop, useShop } from '../support/shop.ts';

// Staleness after a commit of another instance, in real time. shared.test.ts tests the same with a
// stopped clock.

// Not shared with other files, whose requests its cache would remember.
const shop = useShop({ LOG_LEVEL: 'debug' });
const other = new Shop();

beforeAll(() => other.start());
afterAll(() => other.stop());

/** Maximum staleness after a commit of another instance, in ms from its acknowledgement. */
const STALE_MS = 50;
const COMMITS = 60;
const READS: Record<string, () => Promise<unknown>> = {
  GraphQL: async () => (await shop.graphql('{ product(pk: 1) { price } }')).body.data.product.price,
  REST: async () => (await shop.rest('GET', '/api/v1/shop/product/1')).body.price,
};
const UPDATE =
  'mutation ($pk: ID!, $input: ProductPatch!) { updateProduct(pk: $pk, input: $input) { pk } }';

test.each(Object.entries(READS))(
  "requests 50 ms after another instance's acknowledged commit see it: %s",
  async (what, read) => {
    const writer = await shop.makeUser({ scopes: ['products:write'] });
    await shop.makeProduct();
    await shop.sql('update product set price = 0');
    let early = 0;
    for (let price = 1; price <= COMMITS; price++) {
      let acknowledged = Infinity;
      const commit = async (): Promise<void> => {
        await other.graphql(UPDATE, { pk: '1', input: { price } }, { as: writer });
        acknowledged = performance.now();
      };
      const poll = async (): Promise<void> => {
        for (let sent = 0; sent < acknowledged + STALE_MS;) {
          sent = performance.now();
          const shown = await read();
          if (shown === price - 1 && sent >= acknowledged) early++;
          expect(shown).toBe(
            sent >= acknowledged + STALE_MS || shown !== price - 1 ? price : price - 1,
          );
        }
      };
      await Promise.all([commit(), poll()]);
    }
    if (early === 0)
      process.stdout.write(`inconclusive: ${what}: nothing was out of date at any time\n`);
  },
);
