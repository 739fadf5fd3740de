import type { Config } from '../core/config.ts';
import type { Route } from '../api/route.ts';

const GRAPHQL_DOOR = '/graphql';

/**
 * Headers by which a row says that its version is on its way out (RFC 9745, RFC 8594, RFC 5829), as far as the configuration names
 * dates for the version in its path. What nothing else took over, the GraphQL door did.
 */
export function deprecationHeaders(
  { versionDates, publicUrl, basePath }: Config,
  { path, successor = GRAPHQL_DOOR }: Route,
): Record<string, string> {
  const [, version] = /^\/api\/(v1|v2)\//.exec(path) ?? [];
  const { deprecatedOn, sunsetOn } = version === 'v1' || version === 'v2' ? versionDates[version] : {};
  if (!deprecatedOn && !sunsetOn) return {};
  return {
    ...(deprecatedOn && { Deprecation: `@${deprecatedOn.getTime() / 1000}` }),
    ...(sunsetOn && { Sunset: sunsetOn.toUTCString() }),
    Link: `<${publicUrl}${basePath}${successor}>; rel="successor-version"`,
  };
}
