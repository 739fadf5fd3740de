import { afterEach, expect, test } from '../support/jest.ts';
import { PASSWORD, useShop } from '../support/shop.ts';
import { useSecondSession } from '../support/second-session.ts';

const POOL = 4;
/** More lists than connections. */
const LISTS = 12;

// So that a slow machine does not end them.
const REQUEST_TIMEOUT_MS = '60000';

const shop = useShop(
  { DATABASE_POOL_MAX: String(POOL), REQUEST_TIMEOUT_MS },
  { databaseAcquireTimeoutMs: 2_000 },
);

const other = useSecondSession();

afterEach(() => other.query('rollback'));
test('whole lists that wait for the database leave connections to others, and wait longer', async () => {
  await shop.makeUser({ username: 'ada' });
  await shop.makeProducts(3);
  await other.query('begin; lock table product in access exclusive mode');
  const lists = Promise.all(
    Array.from({ length: LISTS }, () => shop.rest('GET', '/api/v1/shop/products')),
  );
  // Each of these needs a pool connection, and times out after two seconds.
  for (let login = 0; login < 2 * POOL; login++) {
    const { status } = await shop.rest('POST', '/token', {
      form: { username: 'ada', password: PASSWORD },
    });
    expect(status).toBe(200);
  }
  await other.query('select pg_sleep(2.5)');
  await other.query('rollback');
  for (const { body } of await lists) expect(body).toHaveLength(3);
});
