import * as changeLog from '../change-log/subscribe.ts';
import type { Change } from '../change-log/change-log.ts';
import type { Context } from '../../request/context.ts';
import { badInput } from '../../core/errors.ts';
import { ProductChangeKind, productChangeOf, type ProductChange } from './product-change.ts';

const MAX_PKS = 100;

/** Filter of product changes; without a field, all changes. */
export interface ProductChangesInput {
  /** Only changes of these products, and bulk changes. */
  pks?: readonly string[] | null;
  kinds?: readonly ProductChangeKind[] | null;
  /** Only changes after this cursor; without one, from now on. */
  after?: string | null | undefined;
}

/** Subscribes to product changes. Throws BAD_USER_INPUT and CURSOR_EXPIRED. */
export async function subscribe(
  ctx: Context,
  { pks, kinds, after }: ProductChangesInput,
): Promise<AsyncGenerator<ProductChange, void>> {
  if (pks && pks.length > MAX_PKS)
    throw badInput('pks', `must have at most ${MAX_PKS} primary keys`);
  return filterChanges(
    await changeLog.subscribe(ctx, after),
    pks && new Set(pks),
    kinds && new Set(kinds),
  );
}

async function* filterChanges(
  changes: AsyncIterable<Change>,
  pks: ReadonlySet<string> | null | undefined,
  kinds: ReadonlySet<ProductChangeKind> | null | undefined,
): AsyncGenerator<ProductChange, void> {
  for await (const change of changes) {
    // A bulk change has no subject and may include any product.
    if (pks && change.subject !== null && !pks.has(change.subject)) continue;
    const productChange = productChangeOf(change);
    if (productChange && (!kinds || kinds.has(productChange.kind))) yield productChange;
  }
}
