import { z } from 'zod';
import type { Context } from './context.ts';
import type { Listing } from './keyset.ts';
import { readRows, shapeOf, type Shape } from './rows.ts';
import { empty, join, name, sql } from './sql.ts';
import { placeOf, type Place } from './tally.ts';
import { refuse } from './validation.ts';

/** A part of a list by position: `limit` entries from number `offset` on, counted from 0. */
export interface SliceArgs {
  limit: number;
  /** May lie past every list, so no number of a fixed size will do. */
  offset: bigint;
}

/** A part of a list and how many entries the whole has. */
export interface Slice<T> {
  items: T[];
  count: number;
}

/** How the pages of one endpoint are asked for and linked: as the query gave them. */
export interface PageQuery extends SliceArgs {
  /** The number of the page, from 1, where it was asked for by number. */
  page?: bigint;
}

const MAX_LIMIT = 1_000;

const integer = (min: bigint) =>
  z
    .string()
    .transform((text, ctx) => {
      if (!/^-?\d+$/.test(text)) return refuse(ctx, 'int_parsing', 'Input should be a valid integer');
      const value = BigInt(text);
      return value < min ? refuse(ctx, 'greater_than_equal', `Input should be greater than or equal to ${min}`) : value;
    })
    .optional();

/**
 * A schema for the query of a paged endpoint: `page` of `pageSize`, or `limit` and `offset`. A `limit` above 1,000 counts
 * as 1,000. Where the query says nothing, it is page 1 if `byPage`, else the first `defaultLimit` (interface, section 8).
 */
export function pageQueryOf({ pageSize, defaultLimit, byPage }: { pageSize: number; defaultLimit: number; byPage: boolean }) {
  return z.object({ page: integer(1n), limit: integer(1n), offset: integer(0n) }).transform(({ page, limit, offset }, ctx): PageQuery => {
    const byLimit = limit !== undefined || offset !== undefined;
    if (page !== undefined && byLimit) return refuse(ctx, 'value_error', 'Give either page, or limit and offset');
    if (page === undefined && (byLimit || !byPage)) {
      const asked = limit ?? BigInt(defaultLimit);
      return { limit: asked > MAX_LIMIT ? MAX_LIMIT : Number(asked), offset: offset ?? 0n };
    }
    const number = page ?? 1n;
    return { page: number, limit: pageSize, offset: (number - 1n) * BigInt(pageSize) };
  });
}

/** The part of the list at this position, with the count of the whole. Past the end: no entries, the true count. */
export async function readSlice<T extends object>(ctx: Context, listing: Listing<T>, { limit, offset }: SliceArgs): Promise<Slice<T>> {
  const { shape, count, place } = await find(ctx, listing, offset);
  if (!place) return { items: [], count };
  const { order, where, tally } = listing;
  const columns = order.map(({ property }) => shape.column(property));
  const conditions = [where, tally === undefined ? undefined : sql`pk >= ${place.pk}`].filter((condition) => condition !== undefined);
  const rows = await readRows(
    ctx,
    sql`
      select ${shape.columns} from ${name(shape.table)} ${conditions.length > 0 ? sql`where ${join(conditions, ' and ')}` : empty}
      order by ${join(columns)} limit ${limit}${place.skip > 0 ? sql` offset ${place.skip}` : empty}`,
    // What is skipped is read.
    tally !== undefined || place.skip === 0,
  );
  return { items: rows.map((row) => shape.entity(row)), count };
}

async function find<T extends object>(
  ctx: Context,
  { entity, where, tally }: Listing<T>,
  offset: bigint,
): Promise<{ shape: Shape<T>; count: number; place?: Place }> {
  const shape = shapeOf(ctx, entity);
  if (tally !== undefined) {
    const { count, ...place } = await placeOf(ctx, tally, Number(offset));
    return { shape, count, ...(offset < count && { place }) };
  }
  const [row] = await readRows(ctx, sql`select count(*) from ${name(shape.table)} ${where ? sql`where ${where}` : empty}`);
  const count = Number(row?.[0]);
  return { shape, count, ...(offset < count && { place: { pk: 1, skip: Number(offset) } }) };
}
