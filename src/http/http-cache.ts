import { hash } from 'node:crypto';
import fresh from 'fresh';
import type { Config } from '../core/config.ts';
import { CREDENTIAL_HEADERS } from './credentials.ts';
import type { Coding } from './compression.ts';
import type { Exchange } from './exchange.ts';

// Who sends credentials, even wrong ones, is not to get what was kept for someone without.
const VARY = CREDENTIAL_HEADERS.join(', ');
/** What an answer of the GraphQL door depends on besides: its media type. */
export const VARY_BY_TYPE = `Accept, ${VARY}`;
/** Of a hash, in characters of six bits each: as many as no two answers share. */
const TAG_LENGTH = 27;

/** The entity tag of a body, byte for byte (RFC 9110, 8.8.3). */
export function tagOf(body: string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, TAG_LENGTH)}"`;
}

/** The tag of the same answer in a coding: weak, because its bytes are others (RFC 9110, 8.8.1). It still matches the strong one in `If-None-Match`. */
export function codedTagOf(tag: string, coding: Coding | undefined): string {
  return coding === undefined ? tag : `W/${tag}`;
}

/** The weak tag of what is made of a table, by a text that changes with each write to it. */
export function weakTagOf(revision: string): string {
  return `W/${tagOf(revision)}`;
}

/**
 * Says that the answer is the same for everyone without credentials, and how long it may be kept (RFC 9111, 5.2.2): PUBLIC_MAX_AGE_SECONDS,
 * and where that is 0, only as long as it is asked about each time. Answers 304, and says so, where the client has it (RFC 9110, 13.1.2).
 */
export function answeredAsKept(exchange: Exchange, { publicMaxAgeSeconds }: Config, tag: string, vary = VARY): boolean {
  exchange.set({
    ETag: tag,
    'Cache-Control': publicMaxAgeSeconds === 0 ? 'public, no-cache' : `public, max-age=${publicMaxAgeSeconds}`,
    Vary: vary,
  });
  const known = exchange.req.headers['if-none-match'];
  // `Cache-Control` of a request is for the caches on its way: every `fetch` with a tag says no-cache, and still has what it names.
  if (known === undefined || !fresh({ 'if-none-match': known }, { etag: tag })) return false;
  exchange.start(304);
  exchange.res.end();
  return true;
}
