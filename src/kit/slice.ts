import { sql } from 'kysely';
import { z } from 'zod';
import type { Context } from './context.ts';
import type { Listing } from './keyset.ts';
import { columnsOf, entityOf } from './rows.ts';
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
export async function readSlice<T extends object>(
  ctx: Context,
  { entity, order, where = sql`true` }: Listing<T>,
  { limit, offset }: SliceArgs,
): Promise<Slice<T>> {
  const { tableName, props } = ctx.em.getMetadata(entity);
  const from = sql`from ${sql.table(tableName)} where ${where}`;
  const db = ctx.em.getKysely();
  const counted = await sql<{ count: string }>`select count(*) as count ${from}`.execute(db);
  const count = Number(counted.rows[0]?.count);
  if (offset >= count) return { items: [], count };
  const columns = order.map(({ property }) => sql.ref(`${tableName}.${props.find(({ name }) => name === property)?.fieldNames[0]}`));
  const { rows } = await sql<Record<string, unknown>>`
    select ${columnsOf(ctx.em, entity, tableName)} ${from} order by ${sql.join(columns)} limit ${limit} offset ${Number(offset)}`.execute(
    db,
  );
  return { items: rows.map((row) => entityOf(ctx.em, entity, row)), count };
}
