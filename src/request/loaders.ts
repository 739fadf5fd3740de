import DataLoader from 'dataloader';
import type { Context } from './context.ts';

/**
 * The loader of this name in this request: look-ups made in the same tick become one call of `batch`,
 * which answers in the order of its keys.
 */
export function loader<Key, Value>(ctx: Context, name: string, batch: (keys: readonly Key[]) => Promise<Value[]>): DataLoader<Key, Value> {
  const known = ctx.loaders.get(name);
  // A name belongs to one call site, so the loader found under it has that site's types.
  if (known) return known as DataLoader<Key, Value>;
  // What it throws at once, as where there is no database, would be taken for a mistake of its own.
  const made = new DataLoader<Key, Value>(async (keys) => batch(keys));
  ctx.loaders.set(name, made);
  return made;
}
