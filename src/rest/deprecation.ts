import type { Config } from '../core/config.ts';
import type { Route } from '../api/route.ts';

const GRAPHQL_API = '/graphql';

/**
 * Returns the deprecation headers of an endpoint (RFC 9745, RFC 8594, RFC 5829), if the version in
 * its path is deprecated. The default successor is the GraphQL API.
 */
export function deprecationHeaders(
  { v1Deprecation, v2Deprecation, publicUrl, basePath }: Config,
  { path, successor = GRAPHQL_API }: Route,
): Record<string, string> {
  const [, version] = /^\/api\/(v1|v2)\//.exec(path) ?? [];
  const dates = version === 'v1' ? v1Deprecation : version === 'v2' ? v2Deprecation : undefined;
  const [deprecatedOn, removedOn] = dates ?? [];
  if (!deprecatedOn) return {};
  return {
    Deprecation: `@${deprecatedOn.getTime() / 1000}`,
    ...(removedOn && { Sunset: removedOn.toUTCString() }),
    Link: `<${publicUrl}${basePath}${successor}>; rel="successor-version"`,
  };
}
