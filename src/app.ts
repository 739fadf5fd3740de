import 'reflect-metadata';
import type { IncomingMessage, RequestListener } from 'node:http';
import express, { type Request, type Response } from 'express';
import { features } from './features.ts';
import type { Route } from './api/route.ts';
import { sendError } from './http/responses.ts';
import { commonHeaders, EXPOSED_HEADERS } from './http/common-headers.ts';
import { deprecationHeaders } from './rest/deprecation.ts';
import { Exchange } from './http/exchange.ts';
import { openGraphqlApi } from './graphql/http.ts';
import { openWebSockets } from './graphql/subscriptions/websocket.ts';
import type { Upgrades } from './http/http-server.ts';
import type { ReadThroughCache } from './http/response-cache.ts';
import { healthEndpoints } from './http/health.ts';
import { openapiEndpoints } from './rest/openapi/openapi.ts';
import { openPages } from './pages/pages.ts';
import { pathsOf, type Endpoint } from './http/paths.ts';
import { rejectInvalidHeaders } from './http/request-headers.ts';
import { endpointHandler, unknownPath } from './rest/endpoint.ts';
import type { Dependencies } from './http/dependencies.ts';
import { createFastPaths } from './graphql/compiled/fast-paths.ts';

/** The app, without a server. */
export interface App {
  /** Handles a request. */
  listener: RequestListener;
  /** Handles connections that upgrade to WebSockets. */
  upgrades: Upgrades;
  /** Closes subscription connections, which would never end by themselves. */
  closeSubscriptions(): void;
  stop(): Promise<void>;
}

/** Creates the app: both APIs on the same services. */
export async function createApp(dependencies: Dependencies): Promise<App> {
  const { config, log } = dependencies;
  const fastPaths = createFastPaths(config);
  const endpoints = features.flatMap(({ routes }) => routes?.(config) ?? []);
  const pages = openPages(config, endpoints);
  const graphql = await openGraphqlApi(dependencies, fastPaths, pages?.sendGraphqlPage);
  const paths = pathsOf(dependencies, [
    ...endpoints.map((endpoint) => withDeprecation(dependencies, fastPaths.share, endpoint)),
    ...graphql.endpoints,
    ...openapiEndpoints(dependencies, features),
    ...healthEndpoints(dependencies),
    ...(pages?.endpoints ?? []),
  ]);

  const app = express();
  app
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', false)
    .set('case sensitive routing', true);
  const common = commonHeaders(config);
  const withExposed = { ...common, 'Access-Control-Expose-Headers': EXPOSED_HEADERS };
  const exchangeOf = (
    ...[req, res, params = {}]: [...Parameters<RequestListener>, Record<string, string>?]
  ): Exchange =>
    new Exchange(
      req,
      res,
      params,
      req.method === 'OPTIONS' ? common : withExposed,
      dependencies.isDraining,
      dependencies.observe,
    );
  for (const { path, handle: answer } of paths) {
    const pattern = path === '' ? '/' : path.replace(/\{(\w+)\}/g, ':$1');
    // Patterns have no wildcards, so each parameter is one string.
    app.all(pattern, (req, res) =>
      answer(exchangeOf(req, res, req.params as Record<string, string>)),
    );
  }
  const errorFormat = { errorKey: 'detail', inputPart: 'body' } as const;
  // A path that cannot be decoded is unknown.
  const router: RequestListener = (req, res) =>
    // Express extends both objects itself.
    app(req as Request, res as Response, (error?: unknown) =>
      sendError(
        exchangeOf(req, res),
        error === undefined || error instanceof URIError ? unknownPathError(req) : error,
        log,
        errorFormat,
      ),
    );
  return {
    listener: fastPaths.listener(paths, exchangeOf, router),
    upgrades: openWebSockets(graphql.connections, exchangeOf),
    closeSubscriptions: () => graphql.connections.registry.close(),
    stop: () => graphql.stop(),
  };
}

function unknownPathError(req: IncomingMessage): unknown {
  try {
    rejectInvalidHeaders(req);
    return unknownPath();
  } catch (error) {
    return error;
  }
}

function withDeprecation(
  dependencies: Dependencies,
  share: ReadThroughCache,
  endpoint: Route,
): Endpoint {
  const headers = deprecationHeaders(dependencies.config, endpoint);
  const answer = endpointHandler(dependencies, share, endpoint);
  return {
    method: endpoint.method,
    path: endpoint.path,
    api: 'rest',
    errorKey: endpoint.errorKey ?? 'detail',
    handle: (exchange) => {
      exchange.set(headers);
      return answer(exchange);
    },
  };
}
