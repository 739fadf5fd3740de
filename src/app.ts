import 'reflect-metadata';
import type { IncomingMessage, RequestListener } from 'node:http';
import express, { type Request, type Response } from 'express';
import { features } from './features.ts';
import type { Route } from './api/route.ts';
import { answerError } from './http/responses.ts';
import { commonHeaders, EXPOSED } from './http/common-headers.ts';
import { deprecationHeaders } from './rest/deprecation.ts';
import { Exchange } from './http/exchange.ts';
import { openGraphqlDoor } from './graphql/http.ts';
import { openWebSockets, type Upgrades } from './graphql/subscriptions/websocket.ts';
import { healthEndpoints } from './http/health.ts';
import { openapiEndpoints } from './rest/openapi/openapi.ts';
import { openPages } from './pages/pages.ts';
import { pathsOf, type Endpoint } from './http/paths.ts';
import { refuseHeaders } from './http/request-headers.ts';
import { rowAnswerer, unknownPath } from './rest/endpoint.ts';
import type { Services } from './http/dependencies.ts';
import { openShortcuts, type Shortcuts } from './graphql/compiled/shortcuts.ts';

/** The app, which listens nowhere yet. */
export interface App {
  /** Answers a request. */
  listener: RequestListener;
  /** Takes over connections that become WebSockets. */
  upgrades: Upgrades;
  /** Sends those who listen away: their connections would never end by themselves. */
  sendAway(): void;
  stop(): Promise<void>;
}

/** Assembles the app: both doors on the same services. */
export async function createApp(services: Services): Promise<App> {
  const { config, log } = services;
  const shortcuts = openShortcuts(config);
  const pages = openPages(config);
  const graphql = await openGraphqlDoor(services, shortcuts, pages?.answerGraphql);
  const rows = features.flatMap(({ routes }) => routes?.(config) ?? []);
  const paths = pathsOf(services, [
    ...rows.map((row) => endpointOf(services, shortcuts, row)),
    ...graphql.endpoints,
    ...openapiEndpoints(services, features),
    ...healthEndpoints(services),
    ...(pages?.endpoints ?? []),
  ]);

  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).set('case sensitive routing', true);
  const common = commonHeaders(config);
  const exposing = { ...common, 'Access-Control-Expose-Headers': EXPOSED };
  const exchangeOf = (...[req, res, params = {}]: [...Parameters<RequestListener>, Record<string, string>?]): Exchange =>
    new Exchange(req, res, params, req.method === 'OPTIONS' ? common : exposing, services.isDraining, services.observe);
  for (const { path, answer } of paths) {
    const pattern = path === '' ? '/' : path.replace(/\{(\w+)\}/g, ':$1');
    // Without wildcards in a pattern, a parameter is one text.
    app.all(pattern, (req, res) => answer(exchangeOf(req, res, req.params as Record<string, string>)));
  }
  const wording = { errorKey: 'detail', inputPart: 'body' } as const;
  // A path that cannot be decoded is an unknown path.
  const router: RequestListener = (req, res) =>
    // Express itself extends both objects.
    app(req as Request, res as Response, (error?: unknown) =>
      answerError(exchangeOf(req, res), error === undefined || error instanceof URIError ? unknownPathOf(req) : error, log, wording),
    );
  return {
    listener: shortcuts.listener(paths, exchangeOf, router),
    upgrades: openWebSockets(graphql.live, exchangeOf),
    sendAway: () => graphql.live.listeners.close(),
    stop: () => graphql.stop(),
  };
}

function unknownPathOf(req: IncomingMessage): unknown {
  try {
    refuseHeaders(req);
    return unknownPath();
  } catch (error) {
    return error;
  }
}

function endpointOf(services: Services, shortcuts: Shortcuts, row: Route): Endpoint {
  const headers = deprecationHeaders(services.config, row);
  const answer = rowAnswerer(services, shortcuts, row);
  return {
    method: row.method,
    path: row.path,
    door: 'rest',
    errorKey: row.errorKey ?? 'detail',
    answer: (exchange) => {
      exchange.set(headers);
      return answer(exchange);
    },
  };
}
