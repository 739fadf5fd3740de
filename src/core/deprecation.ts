import type { Config } from './config.ts';

/** Beginning of deprecated paths, with the dates of their deprecation and removal. */
interface DeprecatedPaths {
  /** Beginning of the paths under BASE_PATH, such as `/api/v1/`. */
  prefix: string;
  dates: NonNullable<Config['v1Deprecation']>;
}

/** Returns the versions of the REST API that are deprecated by the settings. */
export function deprecatedPaths({
  v1Deprecation,
  v2Deprecation,
}: Pick<Config, 'v1Deprecation' | 'v2Deprecation'>): DeprecatedPaths[] {
  return [
    { prefix: '/api/v1/', dates: v1Deprecation },
    { prefix: '/api/v2/', dates: v2Deprecation },
  ].filter((paths): paths is DeprecatedPaths => paths.dates !== undefined);
}
