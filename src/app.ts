import 'reflect-metadata';
import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import { features } from './features.ts';
import { openGraphqlApi } from './graphql/http.ts';
import { openWebSockets } from './graphql/subscriptions/websocket.ts';
import { Admission } from './http/admission.ts';
import { Deadline } from './http/deadline.ts';
import type { Dependencies } from './http/dependencies.ts';
import { routerOf, type Endpoint } from './http/endpoints.ts';
import { errorSender } from './http/error-response.ts';
import { commonHeaders, duplicateError, securityHeaders } from './http/headers.ts';
import { healthEndpoints } from './http/health.ts';
import { unknownPath } from './http/http-error.ts';
import type { Upgrades } from './http/http-server.ts';
import { pageEndpoints } from './http/pages.ts';
import { openRequest } from './http/request-state.ts';
import { ResponseCache } from './http/response-cache.ts';
import { openapiEndpoints } from './rest/openapi.ts';
import { cachedResponses, restEndpoints } from './rest/router.ts';

/** The app, without a server. */
export interface App {
  /** Handles every request. */
  listener: Express;
  /** Handles connections that upgrade to WebSockets. */
  upgrades: Upgrades;
  /** Rejects the requests in progress, because the database is unavailable. */
  rejectPending(): void;
  /** Closes subscription connections, which would never end by themselves. */
  closeSubscriptions(): void;
  stop(): Promise<void>;
}

/** Creates the app: both APIs on the same services. */
export async function createApp(dependencies: Dependencies): Promise<App> {
  const { config, log } = dependencies;
  const routes = features.flatMap((feature) => feature.routes?.(config) ?? []);
  const cache = new ResponseCache();
  const pages = pageEndpoints(config, routes);
  const admission = new Admission(config.maxRequestsInFlight, dependencies.tracing !== undefined);
  const graphql = await openGraphqlApi(dependencies, cache, pages?.sendGraphqlPage, () =>
    admission.isFull(),
  );
  const apis = [...graphql.endpoints, ...restEndpoints(dependencies, cache, routes)];
  const sendError = errorSender(log, errorKeyByPath(config.basePath, apis));
  const deadline = new Deadline(config);
  const base = config.basePath || '/';

  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .set('query parser', false)
    .set('case sensitive routing', true);
  app.use(openRequest(dependencies, sendError));
  app.use(cachedResponses(dependencies, cache));
  app.use(securityHeaders(config));
  app.use(commonHeaders);
  app.use((req, _res, next) => next(duplicateError(req)));
  app.use(deadline.middleware);
  app.use(base, routerOf(healthEndpoints(dependencies)));
  app.use(admission.middleware);
  app.use(base, routerOf(apis));
  app.use(base, routerOf([...openapiEndpoints(config, features), ...(pages?.endpoints ?? [])]));
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
    closeSubscriptions: () => graphql.connections.registry.close(),
    stop: () => graphql.stop(),
  };
}

// Returns the key of errors that occur before an endpoint is found, by the path.
function errorKeyByPath(basePath: string, endpoints: readonly Endpoint[]) {
  const keys = new Map(
    endpoints.map(({ path, errorKey }) => [basePath + path.replace(/\/$/, ''), errorKey]),
  );
  return (path: string) => keys.get(path.replace(/\/$/, '')) ?? 'detail';
}
