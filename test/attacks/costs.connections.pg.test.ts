import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from '../support/jest.ts';
import { useSecondSession } from '../support/second-session.ts';
import { useShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

const shop = useShop({ DATABASE_POOL_MAX: '6', GRAPHQL_MAX_COST: '10000' });
const other = useSecondSession();

/** Number of waiting locks. Unlike pg_locks, pg_stat_activity is frozen within a transaction. */
const waiting = async () =>
  (
    await other.query(
      'select from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())',
    )
  ).rowCount;

test('P4 one request uses at most two connections, however many lists it queries', async () => {
  await shop.makeProduct({ name: 'Product' });
  await other.query('begin; lock table product in access exclusive mode');
  const lists = Array.from(
    { length: 10 },
    (_, index) =>
      `p${index}: products(first: 1, filter: { search: "Product ${index}" }) { nodes { pk } }`,
  );
  const response = shop.graphql(`{ ${lists.join(' ')} }`);
  try {
    await until(async () => (await waiting()) === 2, 'two statements');
    await delay(200);
    expect(await waiting()).toBe(2);
  } finally {
    await other.query('rollback');
  }
  expect(Object.keys((await response).body.data)).toHaveLength(10);
});
