import * as changes from '../change-log/subscribe.ts';
import type { Change } from '../change-log/change-log.ts';
import type { Context } from '../../request/context.ts';
import { badInput } from '../../core/errors.ts';
import { ProductChangeKind, productChangeOf, type ProductChange } from './product-change.ts';

const MAX_PKS = 100;

/** Which changes are asked for: all where nothing is said. */
export interface ProductChangesInput {
  /** Those of these products, and those of many. */
  pks?: readonly string[] | null;
  kinds?: readonly ProductChangeKind[] | null;
  /** Only what has happened after this cursor; from now on where there is none. */
  after?: string | null | undefined;
}

/** The changes of products as they come, as `changes.follow` has them. Throws BAD_USER_INPUT and CHANGES_LOST. */
export async function follow(ctx: Context, { pks, kinds, after }: ProductChangesInput): Promise<AsyncGenerator<ProductChange, void>> {
  if (pks && pks.length > MAX_PKS) throw badInput('pks', `names at most ${MAX_PKS} products`);
  return chosen(await changes.follow(ctx, after), pks && new Set(pks), kinds && new Set(kinds));
}

async function* chosen(
  all: AsyncIterable<Change>,
  pks: ReadonlySet<string> | null | undefined,
  kinds: ReadonlySet<ProductChangeKind> | null | undefined,
): AsyncGenerator<ProductChange, void> {
  for await (const each of all) {
    // Any may be among many.
    if (pks && each.subject !== null && !pks.has(each.subject)) continue;
    const change = productChangeOf(each);
    if (change && (!kinds || kinds.has(change.kind))) yield change;
  }
}
