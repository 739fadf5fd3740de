import 'reflect-metadata';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import type { Route } from './api/route.ts';
import type { Config } from './core/config.ts';
import { features } from './features.ts';
import { openGraphqlApi } from './graphql/http.ts';
import { ERROR_FORMAT } from './graphql/subscriptions/connections.ts';
import { openWebSockets } from './graphql/subscriptions/websocket.ts';
import { Admission } from './http/admission.ts';
import { Deadline } from './http/deadline.ts';
import type { Dependencies } from './http/dependencies.ts';
import { routerOf } from './http/endpoints.ts';
import { allowOrigins, rejectInvalidHeaders, securityHeaders } from './http/headers.ts';
import { healthEndpoints } from './http/health.ts';
import { unknownPath } from './http/http-error.ts';
import type { Upgrades } from './http/http-server.ts';
import { countWrites, openRequest } from './http/request-state.ts';
import { ResponseCache } from './http/response-cache.ts';
import { errorSender, type ErrorFormat } from './http/responses.ts';
import { openPages } from './pages/pages.ts';
import { openapiEndpoints } from './rest/openapi/openapi.ts';
import { errorFormatOf, restApi } from './rest/router.ts';

/** The app, without a server. */
export interface App {
  /** Handles every request. */
  listener: Express;
  /** Handles connections that upgrade to WebSockets. */
  upgrades: Upgrades;
  /** Rejects the requests in progress, because the database is unavailable. Returns their number. */
  rejectPending(): number;
  /** Returns the number of requests whose response is not completely sent. */
  pending(): number;
  /** Closes subscription connections, which would never end by themselves. */
  closeSubscriptions(): void;
  stop(): Promise<void>;
}

/** Creates the app: both APIs on the same services. */
export async function createApp(dependencies: Dependencies): Promise<App> {
  const { config, log } = dependencies;
  const routes = features.flatMap((feature) => feature.routes?.(config) ?? []);
  const cache = new ResponseCache();
  const pages = openPages(config, routes);
  const admission = new Admission(dependencies);
  const graphql = await openGraphqlApi(dependencies, cache, pages?.sendGraphqlPage, () =>
    admission.isFull(),
  );
  const rest = restApi(dependencies, cache, routes);
  const sendError = errorSender(log, formatsOf(config, routes));
  const deadline = new Deadline(config);
  const others = [
    ...healthEndpoints(dependencies),
    ...openapiEndpoints(dependencies, features),
    ...(pages?.endpoints ?? []),
  ];

  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', false)
    .set('case sensitive routing', true);
  countWrites(app.response);
  app.use(openRequest(dependencies, sendError));
  app.use(securityHeaders(config));
  app.use(allowOrigins);
  app.use(rejectInvalidHeaders);
  app.use(rest.cachedResponses);
  app.use(deadline.middleware);
  app.use(admission.middleware);
  app.use(config.basePath || '/', routerOf(graphql.endpoints));
  app.use(config.basePath || '/', rest.router);
  app.use(config.basePath || '/', routerOf(others));
  app.use(() => {
    throw unknownPath();
  });
  // Express knows an error handler by its four parameters.
  app.use((error: unknown, _req: Request, res: Response, _next: NextFunction) =>
    sendError(res, error),
  );

  return {
    listener: app,
    upgrades: openWebSockets(graphql.connections),
    rejectPending: () => deadline.rejectPending(),
    pending: () => deadline.size,
    closeSubscriptions: () => graphql.connections.registry.close(),
    stop: () => graphql.stop(),
  };
}

// Returns the format of errors that occur before an endpoint is found, by the path.
function formatsOf({ basePath }: Config, routes: readonly Route[]): (path: string) => ErrorFormat {
  const byPath = new Map(
    routes.map((route) => [basePath + route.path.replace(/\/$/, ''), errorFormatOf(route)]),
  );
  byPath.set(`${basePath}/graphql`, ERROR_FORMAT);
  return (path) => {
    const { errorKey = 'detail' } = byPath.get(path.replace(/\/$/, '')) ?? {};
    return { errorKey, inputPart: 'body' };
  };
}
