import type { IncomingMessage, ServerResponse } from 'node:http';
import helmet from 'helmet';
import type { Config } from '../core/config.ts';

/** What a page of another origin may read of an answer besides what it always may; what OPTIONS answers has the interface's headers alone (4.5). */
export const EXPOSED = 'Link, Location, ETag, X-Request-Id, WWW-Authenticate, Retry-After, Deprecation, Sunset';

/** The headers that every answer has. What helmet sets does not depend on the request, so it is asked once. */
export function commonHeaders(config: Config): Record<string, string> {
  const headers: Record<string, string> = { 'Access-Control-Allow-Origin': '*' };
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginResourcePolicy: { policy: 'cross-origin' },
    // The explorer's page shows another origin in a frame.
    crossOriginOpenerPolicy: false,
    // Only browsers that are long gone read these, or they say nothing about an answer in JSON.
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
    strictTransportSecurity: config.publicUrl.startsWith('https:'),
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
