import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib';
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
/** Maximum length of a body for which another thread costs more than compressing it. */
const MAX_SYNC = 32 * 1_024;

const { BROTLI_PARAM_QUALITY, BROTLI_PARAM_LGWIN } = constants;
// Measured levels (docs/performance.md). A window of 512 KiB: the default takes several MiB.
const BROTLI = { params: { [BROTLI_PARAM_QUALITY]: 4, [BROTLI_PARAM_LGWIN]: 19 } };

const compress = compression({ brotli: BROTLI });

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

/** Returns the entity tag of a text: weak, as compressed forms have the same (RFC 9110, 8.8.1). */
export function tagOf(text: string): string {
  return `W/"${hash('sha256', text, 'base64url')}"`;
}

/** Compresses the body that is written from now on, if the client accepts a coding. */
export function compressStream(res: Response, { compression: isOn }: Config): void {
  if (!isOn) return;
  res.vary('Accept-Encoding');
  if (acceptedCoding(res.req)) compress(res.req, res, () => undefined);
}

function isCompressible({ compression: isOn }: Config, body: string): boolean {
  return isOn && exceedsBytes(body, MAX_UNCOMPRESSED_BYTES);
}

/** Returns the preferred coding that the client accepts, or undefined for none. */
export function acceptedCoding(req: Request): Coding | undefined {
  return CODINGS.find((coding) => req.headers['accept-encoding'] && req.acceptsEncodings(coding));
}

/**
 * Sends a body without credentials, compressed for clients that accept it: the length would reveal a
 * credential beside text that others chose. With a tag, it is the same for all callers without
 * credentials, cacheable for PUBLIC_MAX_AGE_SECONDS or revalidated each time (RFC 9111, 5.2.2), and
 * 304 if the client has it (RFC 9110, 13.1.2).
 */
export async function sendCompressible(
  res: Response,
  config: Config,
  { body, forms = new Map(), tag }: CachedResponse,
  type = JSON_TYPE,
  vary = VARY,
): Promise<void> {
  const isLong = isCompressible(config, body);
  if (isLong) res.vary('Accept-Encoding');
  if (tag !== undefined) {
    const { publicMaxAgeSeconds: maxAge } = config;
    res.setHeader('ETag', tag);
    res.setHeader('Cache-Control', maxAge === 0 ? 'public, no-cache' : `public, max-age=${maxAge}`);
    res.vary(vary);
    const tags = res.req.headers['if-none-match'];
    // `Cache-Control` of a request is for caches on the way. `fetch` sends no-cache with every tag.
    if (tags !== undefined && fresh({ 'if-none-match': tags }, { etag: tag }))
      return void (res.headersSent || res.status(304).end());
  }
  const coding = isLong ? acceptedCoding(res.req) : undefined;
  if (!coding || res.req.method === 'HEAD') return sendBody(res, 200, body, type);
  const form = await formOf(body, coding, forms);
  if (!res.headersSent) res.setHeader('Content-Encoding', coding);
  sendBody(res, 200, form, type);
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
  const made = async () => {
    if (text.length > MAX_SYNC)
      return coding === 'br' ? promisify(brotliCompress)(text, BROTLI) : promisify(gzip)(text);
    return coding === 'br' ? brotliCompressSync(text, BROTLI) : gzipSync(text);
  };
  const form = forms.get(coding) ?? made().then((bytes) => Buffer.copyBytesFrom(bytes));
  forms.set(coding, form);
  return form;
}
