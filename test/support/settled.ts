import { until } from './until.ts';

/**
 * Waits until the change log is readable up to the latest commit. Open transactions of other
 * databases on the same server delay it, and other tests run there. Must not be called in a
 * transaction of this test.
 */
export async function settled(shop: {
  sql(statement: string): Promise<Record<string, unknown>[]>;
}): Promise<void> {
  const [now] = await shop.sql('select pg_snapshot_xmax(pg_current_snapshot())::text as end');
  await until(async () => {
    const [row] = await shop.sql(
      `select pg_snapshot_xmin(pg_current_snapshot()) >= '${String(now?.end)}'::xid8 as "isPast"`,
    );
    return row?.isPast === true;
  }, 'the end of concurrent transactions');
}
