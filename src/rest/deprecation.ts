import type { Config } from '../core/config.ts';
import { deprecatedPaths } from '../core/deprecation.ts';
import type { Route } from '../api/route.ts';

/**
 * Returns the deprecation headers of an endpoint (RFC 9745, RFC 8594, RFC 5829), if the version in
 * its path is deprecated. The default successor is the GraphQL API.
 */
export function deprecationHeaders(
  config: Config,
  { path, successor = '/graphql' }: Route,
): Record<string, string> {
  const { dates } = deprecatedPaths(config).find(({ prefix }) => path.startsWith(prefix)) ?? {};
  const [deprecatedOn, removedOn] = dates ?? [];
  if (!deprecatedOn) return {};
  return {
    Deprecation: `@${deprecatedOn.getTime() / 1000}`,
    ...(removedOn && { Sunset: removedOn.toUTCString() }),
    Link: `<${config.publicUrl}${config.basePath}${successor}>; rel="successor-version"`,
  };
}
