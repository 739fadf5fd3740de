import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { RequestHandler } from 'express';
import helmet from 'helmet';
import ipaddr from 'ipaddr.js';
import proxyaddr from 'proxy-addr';
import type { Config } from '../core/config.ts';
import { HttpError } from './http-error.ts';

/**
 * Response headers that pages of other origins may read, besides those that CORS always allows.
 * OPTIONS responses have only the interface's headers (4.5).
 */
const EXPOSED_HEADERS =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Deprecation, Sunset';
/** Time for which browsers may cache a preflight response, in seconds: Chromium's maximum. */
const MAX_AGE_S = 7_200;

/** The headers that carry credentials (interface, 5.1.2 and 5.3.1). */
export const CREDENTIAL_HEADERS = ['Authorization', 'X-SESSION-ID', 'X-SESSIONID'];

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

/** Sets `X-Request-Id`, and allows pages of every origin to read the response. */
export const commonHeaders: RequestHandler = (req, res, next) => {
  res.setHeader('X-Request-Id', res.locals.requestId);
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
      .filter((name) => name !== '' && name.toLowerCase() !== 'content-type');
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

/**
 * Returns the error of a second `Host` or `Authorization` (RFC 9112, 3.2; RFC 6750, 3.1), of which
 * Node keeps one: a proxy may have checked the other one.
 */
export function duplicateError({ rawHeaders }: IncomingMessage): HttpError | undefined {
  const name = ['Host', 'Authorization'].find((sought) => {
    const isIt = (text: string, at: number) =>
      at % 2 === 0 && text.length === sought.length && text.toLowerCase() === sought.toLowerCase();
    return rawHeaders.filter(isIt).length > 1;
  });
  return name === undefined ? undefined : new HttpError(400, `Duplicate ${name} header`);
}

/** Returns whether the request has no header that carries credentials. */
export function isAnonymous({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return CREDENTIAL_HEADERS.every((name) => headers[name.toLowerCase()] === undefined);
}

/** The members of a request that show the address of its client. */
type Addressed = Pick<IncomingMessage, 'headers' | 'socket'>;

/**
 * Returns the canonical address of the client: the last hop of `X-Forwarded-For` that is not a
 * trusted proxy. If that is not an address, returns the peer's. Undefined if the client has
 * disconnected.
 */
export function clientAddress({ trustProxy }: Config, req: Addressed): string | undefined {
  const { remoteAddress = '' } = req.socket;
  const client = proxyaddr(req as IncomingMessage, [...trustProxy]);
  const address = [client, remoteAddress].find((text) => isIP(text) !== 0);
  // Without a zone. IPv4 that is mapped to IPv6 becomes IPv4.
  return address && ipaddr.process(address.replace(/%.*/, '')).toString();
}

/**
 * Returns the address of the client, or its /64 network for IPv6, because a client with one IPv6
 * address has 2^64 of them.
 */
export function networkOfClient(config: Config, req: Addressed): string {
  const address = clientAddress(config, req) ?? 'unknown';
  if (!address.includes(':')) return address;
  return `${ipaddr.IPv6.networkAddressFromCIDR(`${address}/64`).toString()}/64`;
}
