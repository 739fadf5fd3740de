import { sql } from 'kysely';
import type { Context } from '../request/context.ts';
import { MAX_PK } from '../core/pk.ts';
import { builder } from '../database/kysely.ts';
import { cachedStatement, columnsOf, entityOf, readRows } from '../database/read.ts';
import { ListQuery, PREPARED_SIZES, type ListDefinition } from './list-definition.ts';
import { placeOf, selectCount } from './row-counts.ts';

/** Arguments of an offset page: `limit` entries from number `offset` on, counted from 0. */
export interface OffsetPageArgs {
  limit: number;
  /** A bigint, because clients may send an offset beyond any list. */
  offset: bigint;
}

/** A part of a list, and the number of entries of the whole list. */
export interface OffsetPage<T> {
  items: T[];
  count: number;
}

/**
 * Reads an offset page by pk of a list without a condition, and the count of the whole list. Has no
 * entries beyond the end.
 */
export async function readOffsetPage<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  { limit, offset }: OffsetPageArgs,
): Promise<OffsetPage<T>> {
  const { name, entity, properties } = list;
  const rank = offset > MAX_PK ? MAX_PK : Number(offset);
  const key = `offset ${name} ${limit} ${properties?.join()}`;
  const statement = cachedStatement(key, [rank], () => pageFrom(ctx, list, limit, rank));
  const rows = await readRows<{ count: number }>(ctx, statement, PREPARED_SIZES.has(limit));
  const items = rows.map((row) => entityOf(entity, row));
  return { items, count: rows[0]?.count ?? (await new ListQuery(ctx, list).counts())[0] ?? 0 };
}

// Row counts locate the page without reading the entries before it.
function pageFrom<T extends object>(
  ctx: Context,
  { entity, properties, rowCounts }: ListDefinition<T>,
  limit: number,
  rank: number,
) {
  const { tableName } = ctx.em.getMetadata(entity);
  const isCounted = rowCounts !== undefined;
  const count = isCounted
    ? selectCount(rowCounts)
    : builder.selectFrom(tableName).select(({ fn }) => fn.countAll<number>().as('count'));
  const page = (isCounted ? builder.with('place', () => placeOf(rowCounts, rank)) : builder)
    .selectFrom(tableName)
    .select(columnsOf(ctx, entity, [], '', properties))
    .select(count.as('count'))
    .orderBy('pk')
    .limit(sql.lit(limit));
  const place = builder.selectFrom('place');
  return isCounted
    ? page
        .where('pk', '>=', place.select('pk'))
        .offset(place.select('skip').$castTo<{ skip: number }>())
    : page.offset(rank);
}
