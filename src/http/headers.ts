import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import helmet from 'helmet';
import type { Config } from '../core/config.ts';
import { HttpError } from './http-error.ts';

/**
 * Response headers that pages of other origins may read, besides those that CORS always allows.
 * OPTIONS responses have only the interface's headers (4.5).
 */
const EXPOSED_HEADERS =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Accept-Encoding, Deprecation, Sunset';
/** Maximum number of header lines. */
export const MAX_HEADERS = 100;
/** Maximum lengths of these headers, in characters. Parsing 16 KB takes milliseconds. */
const MAX_ACCEPT = 500;
const MAX_ACCEPT_ENCODING = 200;
const MAX_FORWARDED = 500;
/** Headers that a request has at most once: a proxy may have checked the other one. */
const SINGLE_HEADERS = ['Host', 'Authorization'];
const LENGTHS = new Set(SINGLE_HEADERS.map(({ length }) => length));
const HOST = /^(?:[\w.~%-]*|\[[\da-f:.]+\])(?::\d*)?$/i;
/** Time for which browsers may cache a preflight response, in seconds: Chromium's maximum. */
const MAX_AGE_S = 7_200;
/** Header name (RFC 9110, 5.1). */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** Sets the security headers of every response. */
export function securityHeaders(config: Config): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
    },
    crossOriginResourcePolicy: { policy: 'cross-origin' },
    // The explorer's page shows another origin in a frame.
    crossOriginOpenerPolicy: false,
    // Only obsolete browsers read these headers, or they do not apply to JSON.
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    strictTransportSecurity: config.publicUrl.startsWith('https:') && { includeSubDomains: false },
  });
}

/** Allows pages of every origin to read the response. */
export const allowOrigins: RequestHandler = (req, res, next) => {
  res.setHeader('Access-Control-Allow-Origin', '*');
  if (req.method !== 'OPTIONS') res.setHeader('Access-Control-Expose-Headers', EXPOSED_HEADERS);
  next();
};

/**
 * Answers OPTIONS with the interface's three headers (4.5) and `Allow`. A preflight is granted all
 * headers that it requests, because browsers send no credentials by themselves.
 */
export function preflight(allow: string): RequestHandler {
  return ({ headers }, res) => {
    const isPreflight =
      headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
    const requested = isPreflight ? (headers['access-control-request-headers'] ?? '') : '';
    const allowed = requested
      .split(',')
      .map((name) => name.trim())
      .filter((name) => HEADER_NAME.test(name) && name.toLowerCase() !== 'content-type');
    res.set({
      Allow: allow,
      'Access-Control-Allow-Methods': allow,
      'Access-Control-Allow-Headers': ['Content-Type', ...allowed].join(', '),
      ...(isPreflight && { 'Access-Control-Max-Age': String(MAX_AGE_S) }),
      'Content-Length': '0',
    });
    res.end();
  };
}

/** Rejects requests with invalid headers (checkHeaders). */
export const rejectInvalidHeaders: RequestHandler = (req, _res, next) => {
  checkHeaders(req);
  next();
};

/** Throws as `rejectInvalid`, and shortens headers whose parsing would take long. */
export function checkHeaders(req: IncomingMessage): void {
  rejectInvalid(req);
  const { headers } = req;
  if ((headers.accept?.length ?? 0) > MAX_ACCEPT) delete headers.accept;
  if ((headers['accept-encoding']?.length ?? 0) > MAX_ACCEPT_ENCODING)
    delete headers['accept-encoding'];
  for (const name of ['x-forwarded-for', 'forwarded']) {
    const hops = String(headers[name] ?? '');
    // Any client can send the first hops: proxies add the last.
    if (hops.length > MAX_FORWARDED)
      headers[name] = hops.slice(-MAX_FORWARDED).replace(/^[^,]*,?/, '');
  }
}

/**
 * Throws 400 for another protocol, 431 for too many headers (RFC 6585, 5), and 400 for an invalid
 * `Host` and for a second `Host` or `Authorization` (RFC 9112, 3.2; RFC 6750, 3.1), of which Node
 * keeps one.
 */
function rejectInvalid({ rawHeaders, httpVersionMajor }: IncomingMessage): void {
  // Node also reads HTTP/0.9, which has no headers, and lines that name HTTP/2.
  if (httpVersionMajor !== 1)
    throw new HttpError(400, 'The protocol must be HTTP/1.0 or HTTP/1.1', { Connection: 'close' });
  if (rawHeaders.length > MAX_HEADERS * 2)
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
}

/** Returns a header name in its usual capitalization, from lower case. */
export function canonicalHeaderName(name: string): string {
  return name.replace(/(^|-)[a-z]/g, (initial) => initial.toUpperCase());
}
