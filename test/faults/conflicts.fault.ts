import assert from 'node:assert/strict';
import { checkDigit } from '../../src/features/products/check-digit.ts';
import type { Cluster } from '../support/postgresql.ts';
import type { Fault } from './fault.ts';
import { assertPoolUsable, openShopCluster } from './cluster.ts';
import { bearer } from './shopper.ts';

const CLIENTS = 32;
const WRITES = 4_000;
const SHORT_WRITES = 200;

export const conflicts: Fault = {
  name: 'conflicts',
  promise:
    'When many writes deadlock or fail to serialize, each is retried at most three times and then rejected with 503. A write with 201 is stored exactly once, a write with 503 is not stored.',
  on: ['postgresql'],
  async run(context) {
    const shopCluster = await openShopCluster(
      context,
      { DATABASE_POOL_MAX: '16' },
      { deadlock_timeout: '20ms' },
    );
    const { cluster, server } = shopCluster;
    // Each new product updates two of four unrelated rows, in varying order.
    await cluster.sql(
      'create table crossing (n int primary key, product_count int not null default 0)',
    );
    await cluster.sql('insert into crossing (n) select generate_series(1, 4)');
    await cluster.sql('create sequence attempt');
    await cluster.sql(`create function cross_over() returns trigger language plpgsql as $$
      declare way int := nextval('attempt') % 4;
      begin
        update crossing set product_count = product_count + 1 where n = way + 1;
        perform pg_sleep(0.001);
        update crossing set product_count = product_count + 1 where n = 4 - way;
        return new;
      end $$`);
    await cluster.sql(
      'create trigger crosses before insert on product for each row execute function cross_over()',
    );
    const before = await counters(cluster);

    const headers = { 'Content-Type': 'application/json', ...(await bearer(server.url)) };
    const created = new Set<string>();
    const rejected = new Set<string>();
    const writes = context.short ? SHORT_WRITES : WRITES;
    let next = 0;
    const client = async (): Promise<void> => {
      for (let count = next++; count < writes; count = next++) {
        const digits = `29${String(count).padStart(10, '0')}`;
        const barcode = digits + checkDigit(digits);
        const body = JSON.stringify({ name: `Product ${count}`, barcode, price: 1 });
        const own = count % 2 ? { ...headers, 'Idempotency-Key': barcode } : headers;
        // The second half runs at the isolation level with the most rollbacks.
        if (count === writes / 2)
          await cluster.sql(
            `alter role postgres set default_transaction_isolation = 'serializable'`,
          );
        const answer = await fetch(`${server.url}/api/v1/shop/product/`, {
          method: 'POST',
          headers: own,
          body,
        });
        await answer.arrayBuffer();
        assert.ok(answer.status === 201 || answer.status === 503, `answered ${answer.status}`);
        if (answer.status === 503) assert.equal(answer.headers.get('Retry-After'), '1');
        (answer.status === 201 ? created : rejected).add(barcode);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));

    const stored = (await cluster.sql(`select barcode from product where barcode like '29%'`)).map(
      ({ barcode }) => String(barcode),
    );
    assert.deepEqual(new Set(stored), created, 'exactly the products with 201 are stored');
    const [effects] = await cluster.sql('select sum(product_count)::int as count from crossing');
    assert.equal(effects?.['count'], 2 * created.size, 'each write has its effect once');
    const [keys] = await cluster.sql('select count(*)::int as count from idempotency_key');
    assert.equal(
      keys?.['count'],
      [...created].filter((barcode) => Number(barcode.slice(2, 12)) % 2).length,
    );
    const after = await counters(cluster);
    const deadlocks = after.deadlocks - before.deadlocks;
    const attempts = after.attempts - before.attempts;
    assert.ok(deadlocks > 0 && attempts > writes, 'there were deadlocks and retries');
    assert.ok(attempts <= 4 * writes, 'at most four attempts per write');
    await assertPoolUsable(shopCluster);
    await shopCluster.close();
    return {
      writes,
      'answered 201': created.size,
      'answered 503': rejected.size,
      deadlocks,
      attempts,
      'effects in doubt': 0,
    };
  },
};

async function counters(cluster: Cluster) {
  const [row] = await cluster.sql(
    `select (select sum(deadlocks)::int from pg_stat_database) as deadlocks, (select last_value::int from attempt) as attempts`,
  );
  return { deadlocks: Number(row?.['deadlocks']), attempts: Number(row?.['attempts']) };
}
