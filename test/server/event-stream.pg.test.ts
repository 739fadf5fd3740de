import { afterEach, expect, test } from '../support/jest.ts';
import { closeStreams, openSubscription } from '../support/events.ts';
import { useSecondSession } from '../support/second-session.ts';
import { settled } from '../support/settled.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop();
const other = useSecondSession();

afterEach(closeStreams);

test('a stream outlives the connections to its database, and receives changes meanwhile and after', async () => {
  const { pk } = await shop.makeProduct();
  await settled(shop);
  const stream = await openSubscription(
    shop,
    'subscription { productChanged { pk product { price } } }',
  );
  const change = (price: number) =>
    other.query(`update product set price = ${price} where pk = ${pk}`);
  await other.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
  await change(1);
  expect((await stream.next())?.data.data.productChanged).toEqual({
    pk: String(pk),
    product: { price: 1 },
  });
  await change(2);
  expect((await stream.next())?.data.data.productChanged.product).toEqual({ price: 2 });
  await until(async () => (await shop.rest('GET', `/api/v1/shop/product/${pk}`)).status === 200);
});
