import 'reflect-metadata';
import type { IncomingMessage, RequestListener } from 'node:http';
import express, { type Request, type Response } from 'express';
import { features } from './features.ts';
import type { Route } from './kit/route.ts';
import { answerError } from './server/answers.ts';
import { commonHeaders, EXPOSED } from './server/common-headers.ts';
import { deprecationHeaders } from './server/deprecation.ts';
import { Exchange } from './server/exchange.ts';
import { openGraphqlDoor } from './server/graphql/door.ts';
import { openWebSockets, type Upgrades } from './server/graphql/web-socket.ts';
import { healthEndpoints } from './server/health.ts';
import { openapiEndpoints } from './server/openapi/openapi.ts';
import { openPages } from './server/pages/pages.ts';
import { pathsOf, type Endpoint } from './server/paths.ts';
import { refuseHeaders } from './server/request.ts';
import { rowAnswerer, unknownPath } from './server/rest.ts';
import type { Services } from './server/services.ts';
import { openShortcuts, type Shortcuts } from './server/shortcuts/shortcuts.ts';

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
