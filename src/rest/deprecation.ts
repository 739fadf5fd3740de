import type { Config } from '../core/config.ts';
import type { Route } from '../api/route.ts';

const GRAPHQL_API = '/graphql';

/**
 * Returns the deprecation headers of an endpoint (RFC 9745, RFC 8594, RFC 5829), if dates are
 * configured for the version in its path. The default successor is the GraphQL API.
 */
export function deprecationHeaders(
  { versionDates, publicUrl, basePath }: Config,
  { path, successor = GRAPHQL_API }: Route,
): Record<string, string> {
  const [, version] = /^\/api\/(v1|v2)\//.exec(path) ?? [];
  const { deprecatedOn, sunsetOn } =
    version === 'v1' || version === 'v2' ? versionDates[version] : {};
  if (!deprecatedOn && !sunsetOn) return {};
  return {
    ...(deprecatedOn && { Deprecation: `@${deprecatedOn.getTime() / 1000}` }),
    ...(sunsetOn && { Sunset: sunsetOn.toUTCString() }),
    Link: `<${publicUrl}${basePath}${successor}>; rel="successor-version"`,
  };
}
