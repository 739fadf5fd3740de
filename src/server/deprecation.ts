import type { Config } from '../kit/config.ts';
import type { Route } from '../kit/route.ts';

/** Headers by which a superseded row says so (RFC 9745, RFC 8594, RFC 5829), as far as the configuration names dates. */
export function deprecationHeaders(
  { v1DeprecatedOn, v1SunsetOn, publicUrl, basePath }: Config,
  { successor }: Route,
): Record<string, string> {
  if (successor === undefined || (!v1DeprecatedOn && !v1SunsetOn)) return {};
  return {
    ...(v1DeprecatedOn && { Deprecation: `@${v1DeprecatedOn.getTime() / 1000}` }),
    ...(v1SunsetOn && { Sunset: v1SunsetOn.toUTCString() }),
    Link: `<${publicUrl}${basePath}${successor}>; rel="successor-version"`,
  };
}
