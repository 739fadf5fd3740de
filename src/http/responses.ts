import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import compression from 'compression';
import type { Request, Response } from 'express';
import fresh from 'fresh';
import type { Config } from '../core/config.ts';
import { exceedsBytes } from '../core/text.ts';
import { CREDENTIAL_HEADERS } from './headers.ts';
import type { CachedResponse } from './response-cache.ts';

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';
// A request with credentials, even invalid ones, must not get a response cached for one without.
const VARY = CREDENTIAL_HEADERS.join(', ');
/** `Vary` of the GraphQL API, whose responses also depend on the media type. */
export const VARY_BY_TYPE = `Accept, ${VARY}`;
/** Headers that differ between responses with the same content. */
const OWN_HEADERS = /^(x-request-id|connection|content-(type|length|encoding))$/;
/** Content codings that the server can write (RFC 9110, 8.4.1), the preferred one first. */
const CODINGS = ['br', 'gzip'] as const;
export type Coding = (typeof CODINGS)[number];

/** Maximum size of a body that is never compressed, in bytes. */
export const MAX_UNCOMPRESSED_BYTES = 1_024;

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN } = constants;
// Measured levels (docs/performance.md). A window of 512 KiB: the default takes several MiB.
const BROTLI = { params: { [BROTLI_PARAM_QUALITY]: 4, [BROTLI_PARAM_LGWIN]: 19 } };

const compress = compression({ threshold: MAX_UNCOMPRESSED_BYTES + 1, brotli: BROTLI });

/** Sends a response, unless the request was already rejected, for example at its timeout. */
export function sendBody(
  res: Response,
  status: number,
  body: string | Buffer,
  type: string = JSON_TYPE,
): void {
  if (res.headersSent || res.req.socket.destroyed) return;
  res.statusCode = status;
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.end(body);
}

/**
 * Sends 304 and returns true if the client has the response with this tag (RFC 9110, 13.1.2). Sets
 * the caching headers of a response that is the same for all callers without credentials
 * (RFC 9111, 5.2.2): cacheable for PUBLIC_MAX_AGE_SECONDS, or revalidated each time if that is 0.
 */
export function sendIfNotModified(
  res: Response,
  { publicMaxAgeSeconds }: Config,
  tag: string,
  vary = VARY,
): boolean {
  res.setHeader('ETag', tag);
  res.setHeader(
    'Cache-Control',
    publicMaxAgeSeconds === 0 ? 'public, no-cache' : `public, max-age=${publicMaxAgeSeconds}`,
  );
  res.vary(vary);
  const clientTags = res.req.headers['if-none-match'];
  // `Cache-Control` of a request is for caches on the way. `fetch` sends no-cache with every tag.
  if (clientTags === undefined || !fresh({ 'if-none-match': clientTags }, { etag: tag }))
    return false;
  if (!res.headersSent) res.status(304).end();
  return true;
}

/**
 * Returns the entity tag of a text: weak, because compressed forms have the same (RFC 9110, 8.8.1).
 */
export function tagOf(text: string): string {
  return `W/"${hash('sha256', text, 'base64url')}"`;
}

/**
 * Compresses the response, which holds no credential: a credential together with text that others
 * chose would be revealed by the length. Without `body`, its length is unknown.
 */
export function allowCompression(res: Response, config: Config, body?: string): void {
  if (!isCompressible(config, body)) return;
  res.vary('Accept-Encoding');
  // The middleware replaces methods of the response, which makes it expensive.
  if (acceptedCoding(res.req)) compress(res.req, res, () => undefined);
}

function isCompressible({ compression: isOn }: Config, body?: string): boolean {
  return isOn && (body === undefined || exceedsBytes(body, MAX_UNCOMPRESSED_BYTES));
}

/** Returns the preferred coding that the client accepts, or undefined for none. */
export function acceptedCoding(req: Request): Coding | undefined {
  return CODINGS.find((coding) => req.headers['accept-encoding'] && req.acceptsEncodings(coding));
}

/** Sends 304, or the body, compressed for clients that accept it. */
export async function sendCompressible(
  res: Response,
  config: Config,
  { body, forms = new Map(), tag }: CachedResponse,
): Promise<void> {
  const isLong = isCompressible(config, body);
  if (isLong) res.vary('Accept-Encoding');
  if (tag !== undefined && sendIfNotModified(res, config, tag)) return;
  const coding = isLong ? acceptedCoding(res.req) : undefined;
  if (!coding || res.req.method === 'HEAD') return sendBody(res, 200, body);
  const form = await formOf(body, coding, forms);
  if (!res.headersSent) res.setHeader('Content-Encoding', coding);
  sendBody(res, 200, form);
}

/** Returns the headers of a sent response that others with the same content also have. */
export function sharedHeaders(res: Response): string[] {
  // Node returns the names in lower case.
  const written = (name: string) => name.replace(/\b[a-z]/g, (letter) => letter.toUpperCase());
  return Object.entries(res.getHeaders()).flatMap(([name, value]) =>
    OWN_HEADERS.test(name) ? [] : [written(name).replace('Etag', 'ETag'), String(value)],
  );
}

/** Sends a response with its shared headers again, compressed for clients that accept it. */
export async function sendAgain(
  res: Response,
  config: Config,
  { body, forms = new Map(), shared = [] }: CachedResponse,
): Promise<void> {
  const coding = isCompressible(config, body) ? acceptedCoding(res.req) : undefined;
  const form = coding ? await formOf(body, coding, forms) : body;
  if (res.destroyed) return;
  const bytes = (res.locals.record.bytes = Buffer.byteLength(form));
  const own = ['X-Request-Id', res.locals.requestId, 'Content-Type', JSON_TYPE];
  if (coding) own.push('Content-Encoding', coding);
  res.writeHead(200, [...shared, ...own, 'Content-Length', String(bytes)]).end(form);
}

// Returns the compressed form of the text, which is made once. Copied, because zlib's is a part of
// a larger buffer.
function formOf(text: string, coding: Coding, forms: Map<Coding, Promise<Buffer>>) {
  const made = () =>
    coding === 'br' ? promisify(brotliCompress)(text, BROTLI) : promisify(gzip)(text);
  const form = forms.get(coding) ?? made().then((bytes) => Buffer.copyBytesFrom(bytes));
  forms.set(coding, form);
  return form;
}
