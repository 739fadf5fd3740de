import type { Context } from '../request/context.ts';
import { fingerprint, notOurs, rankIn, readCursor, writeCursor, type Bound, type OrderColumn } from './cursor.ts';
import { lazily, readSize, RowEdge, type Page, type PageArgs } from './keyset.ts';
import { ListQuery, NOBODY, type Listing } from './list-definition.ts';
import { shapeOf } from '../database/row-mapper.ts';
import type { Cell } from '../database/sql.ts';

/** A part of a tiered list: what comes before all of a higher rank. */
export interface Tier<T extends object> {
  /** Stands in cursors: the same part has the same rank each time. */
  rank: number;
  listing: Listing<T>;
}

/** Lists that are read as one, the lowest rank first. No entry is in more than one of them. */
export interface TieredListing<T extends object> {
  tiers: readonly Tier<T>[];
  /** All of them together, to be counted; its name, order and filter are what cursors are good for. */
  whole: Listing<T>;
}

/** One of the lists with its statements. */
interface TierQuery<T extends object> {
  rank: number;
  /** What its cursors hold: the rank, and then its own order. */
  order: readonly OrderColumn[];
  query: ListQuery<T>;
}

/** A place in one of the lists. */
interface Place<T extends object> {
  tier: TierQuery<T>;
  bound: Bound;
}

const RANK: OrderColumn = { property: 'rank', kind: 'rank' };

/** One page of the lists, as `readPage` of one: no list is asked that does not have to be. */
export async function readTieredPage<T extends object>(ctx: Context, listing: TieredListing<T>, args: PageArgs): Promise<Page<T>> {
  const { size, backward } = readSize(args);
  const { name, entity, order, descending, filter } = listing.whole;
  const shape = shapeOf(ctx, entity);
  const print = fingerprint(name, order, descending, filter);
  const tiers = listing.tiers.map((tier): TierQuery<T> => ({
    rank: tier.rank,
    order: [RANK, ...tier.listing.order],
    query: new ListQuery(ctx, tier.listing, shape.properties),
  }));
  const after = placeIn(tiers, print, 'after', args.after);
  const before = placeIn(tiers, print, 'before', args.before);

  const found = await rowsOf(backward ? tiers.toReversed() : tiers, after, before, backward, size + 1);
  const more = found.length > size;
  if (more) found.length = size;
  if (backward) found.reverse();
  return {
    edges: found.map(({ tier, row }) => new RowEdge(row, (cells) => cursorOf(tier, print, cells), shape.entity(row))),
    hasNextPage: async () => (backward ? before !== undefined && (await isAny(tiers, before, 'behind')) : more),
    hasPreviousPage: async () => (backward ? more : after !== undefined && (await isAny(tiers, after, 'before'))),
    totalCount: lazily(async () => (await new ListQuery(ctx, listing.whole, shape.properties).counts()).get(NOBODY) ?? 0),
  };
}

function placeIn<T extends object>(
  tiers: readonly TierQuery<T>[],
  print: string,
  argument: string,
  cursor: string | null | undefined,
): Place<T> | undefined {
  if (cursor == null) return undefined;
  const rank = rankIn(cursor);
  const tier = tiers.find((one) => one.rank === rank);
  if (!tier) throw notOurs(argument);
  const [, ...bound] = readCursor(tier.order, print, argument, cursor);
  return { tier, bound };
}

// One after another, as the first ones are often enough.
async function rowsOf<T extends object>(
  tiers: readonly TierQuery<T>[],
  after: Place<T> | undefined,
  before: Place<T> | undefined,
  backward: boolean,
  limit: number,
): Promise<{ tier: TierQuery<T>; row: Cell[] }[]> {
  const found: { tier: TierQuery<T>; row: Cell[] }[] = [];
  for (const tier of tiers) {
    if ((after && tier.rank < after.tier.rank) || (before && tier.rank > before.tier.rank)) continue;
    if (found.length === limit) break;
    const rows = await tier.query.rows(boundIn(tier, after), boundIn(tier, before), backward, limit - found.length);
    found.push(...(rows.get(NOBODY) ?? []).map((row) => ({ tier, row })));
  }
  return found;
}

// The place itself is nearly always still there.
async function isAny<T extends object>(
  tiers: readonly TierQuery<T>[],
  { tier, bound }: Place<T>,
  side: 'before' | 'behind',
): Promise<boolean> {
  if (((await tier.query.neighbours(side, bound)).get(NOBODY) ?? 0) > 0) return true;
  const others = tiers.filter(({ rank }) => (side === 'before' ? rank < tier.rank : rank > tier.rank));
  return (await rowsOf(others, undefined, undefined, false, 1)).length > 0;
}

function boundIn<T extends object>(tier: TierQuery<T>, place: Place<T> | undefined): Bound | undefined {
  return place?.tier === tier ? place.bound : undefined;
}

function cursorOf<T extends object>({ rank, order, query }: TierQuery<T>, print: string, row: readonly Cell[]): string {
  return writeCursor(order, print, [rank, ...query.placeOf(row)]);
}
