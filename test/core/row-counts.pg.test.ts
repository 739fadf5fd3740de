import { beforeEach, expect, test } from '../support/jest.ts';
import type pg from 'pg';
import { insertingPks } from '../support/many-products.ts';
import { useSecondSession } from '../support/second-session.ts';
import { useShop } from '../support/shop.ts';

const shop = useShop();

const [one, other] = [useSecondSession(), useSecondSession()];

beforeEach(async () => {
  // A session that has to wait for another gets an error instead.
  for (const client of [one, other]) await client.query(`rollback; set lock_timeout = '100ms'`);
});

test('open transactions that write to the same range do not wait for each other, and count once they have ended', async () => {
  await one.query(insert(1, 20));
  await one.query('begin');
  await other.query('begin');
  await one.query(insert(21, 40));
  await other.query(insert(41, 60));
  await one.query('delete from product where pk between 1 and 5');
  await other.query('delete from product where pk between 6 and 8');
  await one.query('update product set pk = pk + 100 where pk = 9');
  await other.query('update product set price = 2 where pk = 10');
  await other.query('commit');
  await one.query(insert(61, 80));
  await one.query('commit');

  expect(await countedBy(one)).toEqual(await thereBy(one));
  expect((await thereBy(one)).at(-1)).toEqual({ bucket: 0, rows: 72 });
});

test('a rollback in a range does not affect another open transaction there', async () => {
  await one.query('begin');
  await other.query('begin');
  await one.query(insert(1, 20));
  await other.query(insert(21, 30));
  await one.query('rollback');
  await other.query('commit');

  expect(await countedBy(one)).toEqual(await thereBy(one));
  expect((await thereBy(one)).at(-1)).toEqual({ bucket: 0, rows: 10 });
});

test('rows of an open transaction are counted only after its commit, soon by every process', async () => {
  const count = async (): Promise<number> =>
    (await shop.rest('GET', '/api/v2/shop/products')).body.count;
  await other.query('begin');
  await other.query(insert(1, 20));
  expect(await count()).toBe(0);
  await other.query('commit');

  // Not at once: a process caches the version of the table briefly.
  let counted = 0;
  for (let attempt = 0; attempt < 500 && counted === 0; attempt++) counted = await count();
  expect(counted).toBe(20);
});

function insert(first: number, last: number): string {
  return insertingPks(`generate_series(${first}, ${last}) as n`);
}

async function countedBy(client: pg.Client): Promise<unknown[]> {
  const { rows } = await client.query(`
    select bucket::int, sum(rows)::int as rows from product_row_count group by bucket having sum(rows) <> 0 order by 1`);
  return rows;
}

async function thereBy(client: pg.Client): Promise<unknown[]> {
  const { rows } = await client.query(`
    select ((pk - 1) >> 14)::int as bucket, count(*)::int as rows from product group by 1 order by 1`);
  return rows;
}
