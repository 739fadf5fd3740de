import { z } from 'zod';
import type { Context } from '../request/context.ts';
import { MAX_PK } from '../core/pk.ts';
import type { Correspondence } from './correspondence.ts';
import type { PageQuery, OffsetPage } from '../pagination/offset-page.ts';

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

/** Description of the `Link` header for the documents. */
export const LINK_HEADER = { Link: 'URLs of the next and the previous page (RFC 8288).' };

/** Returns the envelope's links as a `Link` header (RFC 8288). */
export function linkHeader({ next, previous }: Envelope<unknown>): Record<string, string> {
  const links = [next && `<${next}>; rel="next"`, previous && `<${previous}>; rel="prev"`].filter(
    (link) => link !== null && link !== '',
  );
  return links.length > 0 ? { Link: links.join(', ') } : {};
}
