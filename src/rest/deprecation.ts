import type { Config } from '../core/config.ts';
import type { Route } from '../api/route.ts';

const GRAPHQL_API = '/graphql';

/**
 * Returns the deprecation headers of an endpoint (RFC 9745, RFC 8594, RFC 5829), if dates are
 * configured for the version in its path. The default successor is the GraphQL API.
 */
export function deprecationHeaders(
  config: Config,
  { path, successor = GRAPHQL_API }: Route,
): Record<string, string> {
  const isV1 = path.startsWith('/api/v1/');
  if (!isV1 && !path.startsWith('/api/v2/')) return {};
  const deprecatedOn = isV1 ? config.v1DeprecatedOn : config.v2DeprecatedOn;
  const sunsetOn = isV1 ? config.v1SunsetOn : config.v2SunsetOn;
  if (!deprecatedOn && !sunsetOn) return {};
  return {
    ...(deprecatedOn && { Deprecation: `@${deprecatedOn.getTime() / 1000}` }),
    ...(sunsetOn && { Sunset: sunsetOn.toUTCString() }),
    Link: `<${config.publicUrl}${config.basePath}${successor}>; rel="successor-version"`,
  };
}
