import type { Shop } from './shop.ts';

/** The entries of the audit trail, in order: actor, action and subject. */
export async function trailOf(shop: Shop): Promise<string[]> {
  const rows = await shop.sql(`
    select concat_ws(' ', concat_ws(':', actor_kind, actor_name), action, subject_kind || ':' || subject_name) as entry from audit_entry order by pk`);
  return rows.map(({ entry }) => String(entry));
}

/** The entries that the work adds. */
export async function entriesAddedBy(shop: Shop, work: () => Promise<unknown>): Promise<string[]> {
  const before = await trailOf(shop);
  await work();
  return (await trailOf(shop)).slice(before.length);
}

/** The changes in the last entry. */
export async function lastChanges(shop: Shop): Promise<unknown> {
  const [row] = await shop.sql('select changes from audit_entry order by pk desc limit 1');
  return row?.['changes'];
}
