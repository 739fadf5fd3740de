import { z } from 'zod';
import type { Context } from '../request/context.ts';
import { MAX_PK } from '../core/pk.ts';
import type { PageQuery, Slice } from '../pagination/offset-page.ts';

/** A page as REST clients get it (docs/decisions.md, "Pages"). */
export interface Envelope<T> {
  items: T[];
  count: number;
  next: string | null;
  previous: string | null;
}

/** The schema of a page of such items. */
export function envelopeOf<Item extends z.ZodType>(item: Item) {
  return z.object({
    items: z.array(item),
    count: z
      .int()
      .meta({ description: 'How many there are in the whole list.', minimum: 0, maximum: MAX_PK, format: 'int32', examples: [1] }),
    next: addressOf('next'),
    previous: addressOf('previous'),
  });
}

function addressOf(which: string) {
  return z
    .string()
    .nullable()
    .meta({ description: `The address of the ${which} page; null where there is none.`, format: 'uri', examples: [null] });
}

/** Wraps a slice with links to its neighbours, made from PUBLIC_URL and never from what the request calls us. */
export function envelope<T>(ctx: Context, path: string, { page, limit, offset }: PageQuery, { items, count }: Slice<T>): Envelope<T> {
  const base = `${ctx.config.publicUrl}${ctx.config.basePath}${path}`;
  const size = BigInt(limit);
  const end = BigInt(count);
  const link = (start: bigint) => (page === undefined ? `${base}?limit=${limit}&offset=${start}` : `${base}?page=${start / size + 1n}`);
  // From beyond the end, the way back leads to the last entries that there are: the last page, or the last `limit`.
  const last = page === undefined ? end - size : ((end - 1n) / size) * size;
  const back = offset < end ? offset - size : last;
  return {
    items,
    count,
    next: offset + size < end ? link(offset + size) : null,
    previous: offset > 0n ? link(back > 0n ? back : 0n) : null,
  };
}

/** What the documents say of `linkHeader`. */
export const LINK_HEADER = { Link: 'The addresses of the next and the previous page (RFC 8288).' };

/** The envelope's links once more as a `Link` header (RFC 8288). */
export function linkHeader({ next, previous }: Envelope<unknown>): Record<string, string> {
  const links = [next && `<${next}>; rel="next"`, previous && `<${previous}>; rel="prev"`].filter((link) => link !== null && link !== '');
  return links.length > 0 ? { Link: links.join(', ') } : {};
}
