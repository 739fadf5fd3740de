import type { RequestListener } from 'node:http';
import type { GraphQLSchema } from 'graphql';
import type { Config } from '../../core/config.ts';
import { features } from '../../features.ts';
import { isAnonymous } from '../../http/credentials.ts';
import type { Path } from '../../http/paths.ts';
import type { Operations } from '../../telemetry/operations.ts';
import { staticRoutes, type MakeExchange } from '../../http/static-routes.ts';
import { createCompiledEndpoint, type CompiledEndpoint } from './compiled-endpoint.ts';
import { CompiledOperations } from './compiled-operations.ts';
import { ResponseCache, type ReadThroughCache } from '../../http/response-cache.ts';

/**
 * Static routes, compiled operations and the response cache (docs/performance.md). They call the
 * same services by the same rules and return the same bytes. Other requests take the normal path.
 * Tests switch them off to compare the responses.
 */
export interface FastPaths {
  /** Returns the listener of the static routes, which passes other requests to the router. */
  listener(
    paths: readonly Path[],
    exchangeOf: MakeExchange,
    router: RequestListener,
  ): RequestListener;
  /** Returns the cached response to a request without credentials, or calls `make`. */
  share: ReadThroughCache;
  /** Creates the compiled endpoint of the GraphQL API. */
  graphql(schema: GraphQLSchema, operations: Operations): CompiledEndpoint;
}

/** Creates the fast paths of an app. */
export function createFastPaths(config: Config): FastPaths {
  const roots = new Map(
    features.flatMap(({ compiledFields: fields = {} }) => Object.entries(fields)),
  );
  const cache = config.fastPaths ? new ResponseCache() : undefined;
  return {
    listener: (paths, exchangeOf, router) =>
      cache ? staticRoutes(paths, exchangeOf, router) : router,
    share: (ctx, req, rowCounts, make) =>
      cache && isAnonymous(req) ? cache.getOrMake(ctx, `GET ${req.url}`, rowCounts, make) : make(),
    graphql: (schema, operations) =>
      createCompiledEndpoint(
        new CompiledOperations(schema, roots, config.graphqlMaxCost, operations),
        cache,
      ),
  };
}
