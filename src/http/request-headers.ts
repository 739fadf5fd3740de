import type { IncomingMessage } from 'node:http';
import { HttpError } from './http-error.ts';

const SINGLE_HEADERS = ['Host', 'Authorization'];
/** Lengths of these names. Comparing lengths first is faster. */
const LENGTHS = new Set(SINGLE_HEADERS.map(({ length }) => length));
/** Maximum number of header lines. */
export const MAX_HEADERS = 100;

/** Maximum lengths of these headers, in characters. Parsing 16 KB takes milliseconds. */
const MAX_ACCEPT = 500;
const MAX_ACCEPT_ENCODING = 200;
const MAX_FORWARDED = 500;

/**
 * Removes `Accept` and `Accept-Encoding` headers that are longer than any client sends, and the
 * first addresses of a long `X-Forwarded-For` or `Forwarded`, which any client can send: proxies
 * add the last.
 */
export function shortenHeaders({ headers }: IncomingMessage): void {
  const { accept, 'accept-encoding': encodings } = headers;
  if (accept !== undefined && accept.length > MAX_ACCEPT) delete headers.accept;
  if (encodings !== undefined && encodings.length > MAX_ACCEPT_ENCODING)
    delete headers['accept-encoding'];
  for (const name of ['x-forwarded-for', 'forwarded']) {
    const hops = String(headers[name] ?? '');
    if (hops.length > MAX_FORWARDED)
      headers[name] = hops.slice(-MAX_FORWARDED).replace(/^[^,]*,?/, '');
  }
}

/** Returns a header name in its usual capitalization, from lower case. */
export function canonicalHeaderName(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (initial) => initial.toUpperCase());
}

/**
 * Returns whether the request has a body, which may be empty (RFC 9112, 6). With too many headers
 * it may, because not all are known.
 */
export function hasBody({ headers, rawHeaders }: IncomingMessage): boolean {
  const { 'transfer-encoding': coding, 'content-length': length = '0' } = headers;
  // Zero may have several digits.
  return Number(length) !== 0 || coding !== undefined || hasTooManyHeaders(rawHeaders);
}

// Names and values alternate.
function hasTooManyHeaders(rawHeaders: readonly string[]): boolean {
  return rawHeaders.length > MAX_HEADERS * 2;
}

/** Returns the declared length of the body in bytes, or 0 without one. */
export function declaredLength({ headers }: IncomingMessage): number {
  return Number(headers['content-length'] ?? 0);
}

/** Returns the query string of the URL with its question mark, or an empty string. */
export function queryStringOf({ url = '' }: IncomingMessage): string {
  const at = url.indexOf('?');
  return at < 0 ? '' : url.slice(at);
}

/** The only defined expectation. Node handles it. */
const CONTINUE = /\b100-continue\b/i;
const HOST = /^(?:[\w.~%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;

/**
 * Throws 400 for another protocol, 431 for too many headers (RFC 6585, 5), 417 for an unknown
 * expectation (RFC 9110, 10.1.1), and 400 for a missing `Host` in HTTP/1.1, an invalid `Host`, and
 * a second `Host` or `Authorization` (RFC 9112, 3.2; RFC 6750, 3.1): Node keeps one of the two, and
 * a proxy in front may have checked the other.
 */
export function rejectInvalidHeaders({
  headers,
  rawHeaders,
  httpVersionMajor,
  httpVersionMinor,
}: IncomingMessage): void {
  // Node also reads HTTP/0.9, which has no headers, and lines that name HTTP/2.
  if (httpVersionMajor !== 1)
    throw new HttpError(400, 'The protocol must be HTTP/1.0 or HTTP/1.1', {
      Connection: 'close',
    });
  if (hasTooManyHeaders(rawHeaders))
    throw new HttpError(431, 'Too many headers', { Connection: 'close' });
  const present = new Set<string>();
  // Alternating names and values. Node's other views of them are built for all names.
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    if (!LENGTHS.has(name.length)) continue;
    const header = SINGLE_HEADERS.find((single) => single.toLowerCase() === name.toLowerCase());
    if (header === undefined) continue;
    if (present.has(header)) throw new HttpError(400, `Duplicate ${header} header`);
    if (header === 'Host' && !HOST.test(rawHeaders[at + 1] ?? ''))
      throw new HttpError(400, 'Invalid Host header');
    present.add(header);
  }
  if (httpVersionMinor === 0) return;
  if (!present.has('Host'))
    throw new HttpError(400, 'Missing Host header', { Connection: 'close' });
  if (headers.expect !== undefined && !CONTINUE.test(headers.expect))
    throw new HttpError(417, 'Unknown expectation');
}
