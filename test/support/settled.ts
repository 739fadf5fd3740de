import { until } from './until.ts';

/**
 * Waits until the log of changes can be read up to what has been committed by now. Transactions of other databases on the same server hold it back, and other
 * tests have theirs there. Must not be called while a transaction of this test is open.
 */
export async function settled(shop: { sql(statement: string): Promise<Record<string, unknown>[]> }): Promise<void> {
  const [now] = await shop.sql('select pg_snapshot_xmax(pg_current_snapshot())::text as end');
  await until(async () => {
    const [row] = await shop.sql(`select pg_snapshot_xmin(pg_current_snapshot()) >= '${String(now?.end)}'::xid8 as "isPast"`);
    return row?.isPast === true;
  }, 'the end of the transactions beside this one');
}
