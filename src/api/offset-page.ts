import { sql } from 'kysely';
import { z } from 'zod';
import type { Context } from '../request/context.ts';
import { MAX_PK } from '../core/pk.ts';
import type { Correspondence } from '../../packages/pages/index.ts';
import { badInput } from '../core/errors.ts';
import { reject } from '../core/validation.ts';
import { builder, columnsOf, entityOf, readRows } from '../database/kysely.ts';
import {
  ListQuery,
  PREPARED_SIZES,
  statementOfList,
  type ListDefinition,
} from '../pagination/list-definition.ts';
import { placeOf, recentCounts } from '../pagination/row-counts.ts';

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
interface PageQuery extends OffsetPageArgs {
  /** Page number from 1, if the query has one. */
  page?: bigint;
}

/** Maximum number of entries per page. */
const MAX_LIMIT = 1_000;

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

/**
 * Reads an offset page by pk of a list without a condition, and the count of the whole list. Has no
 * entries beyond the end.
 */
export async function readOffsetPage<T extends object>(
  ctx: Context,
  list: ListDefinition<T>,
  { limit, offset }: OffsetPageArgs,
): Promise<OffsetPage<T>> {
  const { entity, properties, rowCounts } = list;
  const rank = offset > MAX_PK ? MAX_PK : Number(offset);
  const counts = rowCounts === undefined ? undefined : await recentCounts(ctx, rowCounts);
  const count = counts?.count ?? (await new ListQuery(ctx, list).counts())[0] ?? 0;
  // Row counts locate the page without reading the entries before it.
  const place = counts ? placeOf(counts, rank) : { pk: 0, skip: rank };
  if (!place) return { items: [], count };
  const build = () =>
    builder
      .selectFrom(ctx.em.getMetadata(entity).tableName)
      .select(columnsOf(ctx, entity, [], properties))
      .where('pk', '>=', place.pk)
      .orderBy('pk')
      .limit(sql.lit(limit))
      .offset(place.skip);
  const statement = statementOfList(list, `offset ${limit}`, [place.pk], [place.skip], build);
  const rows = await readRows(ctx, statement, counts !== undefined && PREPARED_SIZES.has(limit));
  return { items: rows.map((row) => entityOf(entity, row)), count };
}

/** A page of the REST API (docs/rest.md). */
export interface Envelope<T> {
  items: T[];
  count: number;
  next: string | null;
  previous: string | null;
}

/** Returns the schema of a page of such items. */
export function envelopeOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    count: z.int().meta({
      description: 'Number of entries in the whole list.',
      minimum: 0,
      maximum: MAX_PK,
      format: 'int64',
      examples: [1],
    }),
    next: urlOf('next'),
    previous: urlOf('previous'),
  });
}

function urlOf(which: string) {
  return z
    .string()
    .nullable()
    .meta({
      description: `URL of the ${which} page; null if there is none.`,
      format: 'uri',
      examples: [null],
    });
}

/** Adds links to an offset page. Links use PUBLIC_URL, never the request's Host header. */
export function envelope<T>(
  ctx: Context,
  path: string,
  { page, limit, offset }: PageQuery,
  { items, count }: OffsetPage<T>,
): Envelope<T> {
  const base = `${ctx.config.publicUrl}${ctx.config.basePath}${path}`;
  const size = BigInt(limit);
  const end = BigInt(count);
  const link = (start: bigint) =>
    page === undefined
      ? `${base}?limit=${limit}&offset=${start}`
      : `${base}?page=${start / size + 1n}`;
  // From beyond the end, `previous` links to the last page, or to the last `limit` entries.
  const lastStart = page === undefined ? end - size : ((end - 1n) / size) * size;
  const previousStart = offset < end ? offset - size : lastStart;
  return {
    items,
    count,
    next: offset + size < end ? link(offset + size) : null,
    previous: offset > 0n ? link(previousStart > 0n ? previousStart : 0n) : null,
  };
}

/** Returns the parts of a page and of a GraphQL connection with the same values. */
export function envelopeCorrespondences(connection: string): Correspondence[] {
  return [
    { rest: 'items', graphql: `${connection}.nodes` },
    { rest: 'count', graphql: `${connection}.totalCount` },
    { rest: 'next', graphql: `${connection}.pageInfo.hasNextPage`, as: 'presence' },
  ];
}

/** Returns the envelope's links as a `Link` header (RFC 8288). */
export function linkHeader({ next, previous }: Envelope<unknown>): Record<string, string> {
  const links = [next && `<${next}>; rel="next"`, previous && `<${previous}>; rel="prev"`].filter(
    (link) => link !== null && link !== '',
  );
  return links.length > 0 ? { Link: links.join(', ') } : {};
}
