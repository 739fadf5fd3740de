import { z } from 'zod';
import type { Context } from '../request/context.ts';
import type { ListDefinition } from './keyset.ts';
import { readRows, shapeOf, type Shape } from '../database/row-mapper.ts';
import {
  empty,
  identifier,
  join,
  cachedStatement,
  literal,
  sql,
  type Sql,
} from '../database/sql.ts';
import {
  countOf,
  invalidateVersion,
  positionOf,
  positionQuery,
  parseVersion,
  versionColumn,
  type RowPosition,
} from './row-counts.ts';
import { badInput } from '../core/errors.ts';
import { reject } from '../core/validation.ts';

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

/** Parsed query of a paged endpoint. */
export interface PageQuery extends OffsetPageArgs {
  /** Page number from 1, if the query has one. */
  page?: bigint;
}

/** Maximum number of entries per page. */
const MAX_LIMIT = 1_000;
/** Maximum number of entries for which a prepared statement is used. */
const MAX_PREPARED = 100;

const NOT_AN_INTEGER = 'Input should be a valid integer';

const integer = (min: bigint, description: string) =>
  z
    .string()
    .transform((text, ctx) => {
      if (!/^-?\d+$/.test(text)) return reject(ctx, 'int_parsing', NOT_AN_INTEGER);
      const value = BigInt(text);
      return value < min
        ? reject(ctx, 'greater_than_equal', `Input should be greater than or equal to ${min}`)
        : value;
    })
    .optional()
    .meta({ description, type: 'integer', minimum: Number(min) });

/** Example error of an invalid page query, for the documents. */
export const INVALID_PAGE = badInput('page', NOT_AN_INTEGER, 'int_parsing');

/**
 * Returns the schema for the query of a paged endpoint: `page` of `pageSize`, or `limit` and
 * `offset`. A `limit` above 1,000 counts as 1,000. An empty query means page 1 if `byPage`, else
 * the first `defaultLimit` entries (interface, section 8).
 */
export function pageQueryOf({
  pageSize,
  defaultLimit,
  byPage,
}: {
  pageSize: number;
  defaultLimit: number;
  byPage: boolean;
}) {
  const query = z.object({
    page: integer(
      1n,
      `Page number, with ${pageSize} entries per page.${byPage ? ' Default: 1, without limit and offset.' : ''}`,
    ),
    limit: integer(
      1n,
      `Maximum number of entries, at most ${MAX_LIMIT}. Default: ${defaultLimit}. Cannot be combined with page.`,
    ),
    offset: integer(0n, 'Number of entries to skip. Cannot be combined with page.'),
  });
  return query.transform(({ page, limit, offset }, ctx): PageQuery => {
    const byLimit = limit !== undefined || offset !== undefined;
    if (page !== undefined && byLimit)
      return reject(ctx, 'value_error', 'Give either page, or limit and offset');
    if (page === undefined && (byLimit || !byPage)) {
      const requested = limit ?? BigInt(defaultLimit);
      return { limit: requested > MAX_LIMIT ? MAX_LIMIT : Number(requested), offset: offset ?? 0n };
    }
    const number = page ?? 1n;
    return { page: number, limit: pageSize, offset: (number - 1n) * BigInt(pageSize) };
  });
}

/** Reads an offset page and the count of the whole list. Has no entries beyond the end. */
export async function readOffsetPage<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  args: OffsetPageArgs,
  /** Properties to read. Default: all. */
  properties?: readonly (keyof T & string)[],
): Promise<OffsetPage<T>> {
  const shape = shapeOf(ctx, list.entity, properties);
  return list.rowCounts === undefined
    ? readWithCount(ctx, list, shape, args)
    : readByRowCounts(ctx, list, shape, list.rowCounts, args);
}

async function readWithCount<T extends object>(
  ctx: Context,
  { order, where }: ListDefinition<T>,
  shape: Shape<T>,
  { limit, offset }: OffsetPageArgs,
): Promise<OffsetPage<T>> {
  const from = sql`from ${identifier(shape.table)} ${where ? sql`where ${where}` : empty}`;
  const [row] = await readRows(ctx, sql`select count(*) ${from}`);
  const count = Number(row?.[0]);
  if (offset >= count) return { items: [], count };
  const columns = join(order.map(({ property }) => shape.column(property)));
  const rows = await readRows(
    ctx,
    sql`select ${shape.columns} ${from} order by ${columns} limit ${limit} offset ${Number(offset)}`,
  );
  return { items: rows.map((cells) => shape.entity(cells)), count };
}

// Row counts locate the page without reading the entries before it. The statement that reads the
// page also reads the table's version. If that differs from the cached version, or the position is
// unknown, one statement finds the position and reads the page.
async function readByRowCounts<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  shape: Shape<T>,
  rowCounts: string,
  { limit, offset }: OffsetPageArgs,
): Promise<OffsetPage<T>> {
  const position = await positionOf(ctx, rowCounts, Number(offset));
  if (position && offset >= position.count) return { items: [], count: position.count };
  const cachedPage = position && (await readFrom(ctx, list, shape, rowCounts, limit, position));
  if (cachedPage && cachedPage.version === position.version) return cachedPage;
  // The cached version is out of date.
  if (cachedPage) invalidateVersion(ctx, rowCounts);
  const page = await readFrom(
    ctx,
    list,
    shape,
    rowCounts,
    limit,
    positionQuery(rowCounts, Number(offset)),
  );
  // An empty page means that the list has become shorter than the offset.
  return page.items.length > 0 ? page : { items: [], count: await countOf(ctx, rowCounts) };
}

async function readFrom<T extends object>(
  ctx: Context,
  { name, order }: ListDefinition<T>,
  shape: Shape<T>,
  rowCounts: string,
  limit: number,
  position: RowPosition | Sql,
): Promise<OffsetPage<T> & { version: number }> {
  const isPrepared = limit <= MAX_PREPARED;
  const columns = () => join(order.map(({ property }) => shape.column(property)));
  const from = (pk: Sql, skip: Sql) => sql`
    select ${shape.columns}, ${versionColumn(rowCounts)} from ${identifier(shape.table)} where ${shape.column('pk')} >= ${pk}
    order by ${columns()} limit ${isPrepared ? literal(limit) : limit}${skip}`;
  const build = () => {
    if (!('pk' in position))
      return sql`with place as materialized (${position}) ${from(sql`(select pk from place)`, sql` offset (select skip from place)`)}`;
    return from(sql`${position.pk}`, position.skip > 0 ? sql` offset ${position.skip}` : empty);
  };
  const values =
    'pk' in position
      ? [position.pk, ...(position.skip > 0 ? [position.skip] : [])]
      : position.values;
  const variant = 'pk' in position ? values.length : 'looked for';
  const statement = isPrepared
    ? cachedStatement(`slice ${name} ${shape.properties.join()} ${limit} ${variant}`, values, build)
    : build();
  const rows = await readRows(ctx, statement, isPrepared);
  const { version, count } = parseVersion(rows[0]?.at(-1));
  return { items: rows.map((cells) => shape.entity(cells)), count, version };
}
