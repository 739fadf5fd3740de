import { hash } from 'node:crypto';
import fresh from 'fresh';
import type { Config } from '../core/config.ts';
import { CREDENTIAL_HEADERS } from './credentials.ts';
import type { Coding } from './compression.ts';
import type { Exchange } from './exchange.ts';

// A request with credentials, even invalid ones, must not get a response cached for one without.
const VARY = CREDENTIAL_HEADERS.join(', ');
/** `Vary` of the GraphQL API, whose responses also depend on the media type. */
export const VARY_BY_TYPE = `Accept, ${VARY}`;
/** Length of the hash in a tag, in characters of 6 bits: long enough to avoid collisions. */
const TAG_LENGTH = 27;

/** Returns the strong entity tag of a body (RFC 9110, 8.8.3). */
export function tagOf(body: string): string {
  return `"${hash('sha256', body, 'base64url').slice(0, TAG_LENGTH)}"`;
}

/**
 * Returns the tag of the response in a coding: weak, because its bytes differ (RFC 9110, 8.8.1).
 * A weak tag still matches the strong tag in `If-None-Match`.
 */
export function codedTagOf(tag: string, coding: Coding | undefined): string {
  return coding === undefined ? tag : `W/${tag}`;
}

/** Returns the weak tag of a response made from a table, whose revision changes with each write. */
export function weakTagOf(revision: string): string {
  return `W/${tagOf(revision)}`;
}

/**
 * Sets the caching headers of a response that is the same for all callers without credentials
 * (RFC 9111, 5.2.2): cacheable for PUBLIC_MAX_AGE_SECONDS, or revalidated each time if that is 0.
 * Sends 304 and returns true if the client has the response (RFC 9110, 13.1.2).
 */
export function answerFromClientCache(
  exchange: Exchange,
  { publicMaxAgeSeconds }: Config,
  tag: string,
  vary = VARY,
): boolean {
  exchange.set({
    ETag: tag,
    'Cache-Control':
      publicMaxAgeSeconds === 0 ? 'public, no-cache' : `public, max-age=${publicMaxAgeSeconds}`,
    Vary: vary,
  });
  const clientTags = exchange.req.headers['if-none-match'];
  // `Cache-Control` of a request is for caches on the way. `fetch` sends no-cache with every tag.
  if (clientTags === undefined || !fresh({ 'if-none-match': clientTags }, { etag: tag }))
    return false;
  exchange.start(304);
  exchange.res.end();
  return true;
}
