import DataLoader from 'dataloader';
import type { Context } from './context.ts';

/**
 * Returns the request's loader of this name. Look-ups of one tick become one call of `batch`, which
 * returns values in the order of its keys.
 */
export function loader<Key, Value>(
  ctx: Context,
  name: string,
  batch: (keys: readonly Key[]) => Promise<Value[]>,
): DataLoader<Key, Value> {
  const existing = ctx.loaders.get(name);
  // Each name belongs to one call site, so the types match.
  if (existing) return existing as DataLoader<Key, Value>;
  // Async, because DataLoader reports a synchronous throw, such as one without a database, as
  // misuse.
  const created = new DataLoader<Key, Value>(async (keys) => batch(keys));
  ctx.loaders.set(name, created);
  return created;
}
