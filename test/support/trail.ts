import type { Shop } from './shop.ts';

/** What the audit trail holds, in its order, in short: by whom, what, and to what. */
export async function trailOf(shop: Shop): Promise<string[]> {
  const rows = await shop.sql(`
    select concat_ws(' ', concat_ws(':', actor_kind, actor_name), action, subject_kind || ':' || subject_name) as entry from audit_entry order by pk`);
  return rows.map(({ entry }) => String(entry));
}

/** What the work adds to that. */
export async function addedBy(shop: Shop, work: () => Promise<unknown>): Promise<string[]> {
  const before = await trailOf(shop);
  await work();
  return (await trailOf(shop)).slice(before.length);
}

/** The facts that the last entry says have changed. */
export async function lastChanges(shop: Shop): Promise<unknown> {
  const [row] = await shop.sql('select changes from audit_entry order by pk desc limit 1');
  return row?.['changes'];
}
