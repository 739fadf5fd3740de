import { z } from 'zod';
import type { Context } from '../request/context.ts';
import type { Listing } from './keyset.ts';
import { readRows, shapeOf, type Shape } from '../database/row-mapper.ts';
import { empty, identifier, join, kept, literal, sql, type Sql } from '../database/sql.ts';
import { countOf, forget, placeAt, placeOf, readStamp, stampOf, type Place } from './row-counts.ts';
import { badInput } from '../core/errors.ts';
import { refuse } from '../core/validation.ts';

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
/** Up to so many entries, reading them is quick. */
const MAX_HOT = 100;

const NO_INTEGER = 'Input should be a valid integer';

const integer = (min: bigint, description: string) =>
  z
    .string()
    .transform((text, ctx) => {
      if (!/^-?\d+$/.test(text)) return refuse(ctx, 'int_parsing', NO_INTEGER);
      const value = BigInt(text);
      return value < min ? refuse(ctx, 'greater_than_equal', `Input should be greater than or equal to ${min}`) : value;
    })
    .optional()
    .meta({ description, type: 'integer', minimum: Number(min) });

/** An error of a query that the schema of `pageQueryOf` rejects, for the documents. */
export const INVALID_PAGE = badInput('page', NO_INTEGER, 'int_parsing');

/**
 * A schema for the query of a paged endpoint: `page` of `pageSize`, or `limit` and `offset`. A `limit` above 1,000 counts
 * as 1,000. Where the query says nothing, it is page 1 if `byPage`, else the first `defaultLimit` (interface, section 8).
 */
export function pageQueryOf({ pageSize, defaultLimit, byPage }: { pageSize: number; defaultLimit: number; byPage: boolean }) {
  const query = z.object({
    page: integer(1n, `The number of a page of ${pageSize}.${byPage ? ' Where nothing is given, it is 1.' : ''}`),
    limit: integer(1n, `How many, at most ${MAX_LIMIT}; ${defaultLimit} where it is not given. Not together with page.`),
    offset: integer(0n, 'After how many to begin. Not together with page.'),
  });
  return query.transform(({ page, limit, offset }, ctx): PageQuery => {
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
export async function readSlice<T extends object>(
  ctx: Context,
  listing: Listing<T>,
  args: SliceArgs,
  /** What is read of each entry; everything, where this is left out. */
  only?: readonly (keyof T & string)[],
): Promise<Slice<T>> {
  const shape = shapeOf(ctx, listing.entity, only);
  return listing.tally === undefined ? readCounted(ctx, listing, shape, args) : readTallied(ctx, listing, shape, listing.tally, args);
}

async function readCounted<T extends object>(
  ctx: Context,
  { order, where }: Listing<T>,
  shape: Shape<T>,
  { limit, offset }: SliceArgs,
): Promise<Slice<T>> {
  const from = sql`from ${identifier(shape.table)} ${where ? sql`where ${where}` : empty}`;
  const [row] = await readRows(ctx, sql`select count(*) ${from}`);
  const count = Number(row?.[0]);
  if (offset >= count) return { items: [], count };
  const columns = join(order.map(({ property }) => shape.column(property)));
  const rows = await readRows(ctx, sql`select ${shape.columns} ${from} order by ${columns} limit ${limit} offset ${Number(offset)}`);
  return { items: rows.map((cells) => shape.entity(cells)), count };
}

// By what the tally says, the entries are found without reading those before them. The statement that reads them tells how far
// the table has come by then: where that is further than the tally was, or the place is not known, one statement looks for both.
async function readTallied<T extends object>(
  ctx: Context,
  listing: Listing<T>,
  shape: Shape<T>,
  tally: string,
  { limit, offset }: SliceArgs,
): Promise<Slice<T>> {
  const place = await placeOf(ctx, tally, Number(offset));
  if (place && offset >= place.count) return { items: [], count: place.count };
  const found = place && (await readFrom(ctx, listing, shape, tally, limit, place));
  if (found && found.version === place.version) return found;
  // What was seen a moment ago does not hold any more.
  if (found) forget(ctx, tally);
  const read = await readFrom(ctx, listing, shape, tally, limit, placeAt(tally, Number(offset)));
  // Nothing there after all: the list has become shorter than where it was to be read.
  return read.items.length > 0 ? read : { items: [], count: await countOf(ctx, tally) };
}

async function readFrom<T extends object>(
  ctx: Context,
  { name, order }: Listing<T>,
  shape: Shape<T>,
  tally: string,
  limit: number,
  place: Place | Sql,
): Promise<Slice<T> & { version: number }> {
  const isQuick = limit <= MAX_HOT;
  const columns = () => join(order.map(({ property }) => shape.column(property)));
  const from = (pk: Sql, skip: Sql) => sql`
    select ${shape.columns}, ${stampOf(tally)} from ${identifier(shape.table)} where ${shape.column('pk')} >= ${pk}
    order by ${columns()} limit ${isQuick ? literal(limit) : limit}${skip}`;
  const make = () => {
    if (!('pk' in place))
      return sql`with place as materialized (${place}) ${from(sql`(select pk from place)`, sql` offset (select skip from place)`)}`;
    return from(sql`${place.pk}`, place.skip > 0 ? sql` offset ${place.skip}` : empty);
  };
  const values = 'pk' in place ? [place.pk, ...(place.skip > 0 ? [place.skip] : [])] : place.values;
  const form = 'pk' in place ? values.length : 'looked for';
  const statement = isQuick ? kept(`slice ${name} ${shape.properties.join()} ${limit} ${form}`, values, make) : make();
  const rows = await readRows(ctx, statement, isQuick);
  const { version, count } = readStamp(rows[0]?.at(-1));
  return { items: rows.map((cells) => shape.entity(cells)), count, version };
}
