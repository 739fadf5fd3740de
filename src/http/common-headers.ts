import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';
import type { Config } from '../core/config.ts';

/**
 * Response headers that pages of other origins may read, besides those that CORS always allows.
 * OPTIONS responses have only the interface's headers (4.5).
 */
export const EXPOSED_HEADERS =
  'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Accept-Encoding, Deprecation, Sunset';

/**
 * Returns the headers of every response. Helmet's do not depend on the request, so it runs once.
 */
export function commonHeaders(config: Config): Record<string, string> {
  const headers: Record<string, string> = { 'Access-Control-Allow-Origin': '*' };
  const protect = helmet({
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
    // Other hosts of the domain may not support TLS.
    strictTransportSecurity: config.publicUrl.startsWith('https:') && { includeSubDomains: false },
  });
  const recorder = {
    setHeader: (name: string, value: string) => void (headers[name] = value),
    removeHeader: (name: string) => void delete headers[name],
  };
  protect({} as IncomingMessage, recorder as unknown as ServerResponse, (error) => {
    if (error !== undefined) throw error;
  });
  return headers;
}
