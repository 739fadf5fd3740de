import 'reflect-metadata';
import { randomUUID } from 'node:crypto';
import express, { type ErrorRequestHandler, type Express } from 'express';
import helmet from 'helmet';
import { features } from './features.ts';
import type { Route } from './kit/route.ts';
import { answerError } from './server/answers.ts';
import { CREDENTIAL_HEADERS } from './server/credentials.ts';
import { deprecationHeaders } from './server/deprecation.ts';
import { openGraphqlDoor } from './server/graphql.ts';
import { healthEndpoints } from './server/health.ts';
import { servePaths, type Endpoint } from './server/paths.ts';
import { answerRow, unknownPath } from './server/rest.ts';
import type { Services } from './server/services.ts';

/** The app, which listens nowhere yet. */
export interface App {
  express: Express;
  stop(): Promise<void>;
}

/** Assembles the app: both doors on the same services. */
export async function createApp(services: Services): Promise<App> {
  const { config, log } = services;
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).set('case sensitive routing', true);
  app.set('trust proxy', config.trustProxy.length > 0 ? config.trustProxy : false);
  app.use(
    helmet({
      contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
      crossOriginResourcePolicy: { policy: 'cross-origin' },
      // The explorer's page shows another origin in a frame.
      crossOriginOpenerPolicy: false,
      strictTransportSecurity: config.publicUrl.startsWith('https:'),
    }),
  );
  app.use((_req, res, next) => {
    res.set({ 'X-Request-Id': randomUUID(), 'Access-Control-Allow-Origin': '*' });
    if (services.isDraining()) res.set('Connection', 'close');
    next();
  });

  const graphql = await openGraphqlDoor(services);
  const rows = features.flatMap(({ routes }) => routes?.(config) ?? []);
  servePaths(app, services, [...rows.map((row) => endpointOf(services, row)), ...graphql.endpoints, ...healthEndpoints(services)]);

  const wording = { errorKey: 'detail', inputPart: 'body' } as const;
  app.use((req, res) => answerError(req, res, unknownPath(), log, wording));
  const onError: ErrorRequestHandler = (error, req, res, _next) =>
    // A path that cannot be decoded is one that nothing has.
    answerError(req, res, error instanceof URIError ? unknownPath() : error, log, wording);
  app.use(onError);
  return { express: app, stop: () => graphql.stop() };
}

function endpointOf(services: Services, row: Route): Endpoint {
  const headers = deprecationHeaders(services.config, row);
  return {
    method: row.method,
    path: row.path,
    reads: [...(row.access === 'login' ? [] : CREDENTIAL_HEADERS), ...(row.reads ?? [])],
    errorKey: row.errorKey ?? 'detail',
    answer: (req, res) => answerRow(services, row, req, res.set(headers)),
  };
}
