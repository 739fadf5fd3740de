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
