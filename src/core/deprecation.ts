import type { Config } from './config.ts';

/**
 * Returns the versions of the REST API that are deprecated by the settings: the beginning of their
 * paths under BASE_PATH, such as `/api/v1/`, with the dates of their deprecation and removal.
 */
export function deprecatedPaths(config: Pick<Config, 'v1Deprecation' | 'v2Deprecation'>) {
  const { v1Deprecation, v2Deprecation } = config;
  return Object.entries({ '/api/v1/': v1Deprecation, '/api/v2/': v2Deprecation }).flatMap(
    ([prefix, dates]) => (dates ? [{ prefix, dates }] : []),
  );
}

/**
 * Returns the deprecation headers of an endpoint (RFC 9745, RFC 8594, RFC 5829), if the version in
 * its path is deprecated. The default successor is the GraphQL API.
 */
export function deprecationHeaders(
  config: Config,
  { path, successor = '/graphql' }: { path: string; successor?: string },
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
