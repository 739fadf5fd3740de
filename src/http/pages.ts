import { fileURLToPath } from 'node:url';
import express, { type RequestHandler } from 'express';
import { openPages, type Bundle, type Render } from '../../packages/pages/index.ts';
import type { Route } from '../api/route.ts';
import type { Config } from '../core/config.ts';
import { VERSION } from '../core/version.ts';
import { demoUsers } from '../features/demo-data.ts';
import { acceptedCoding, type Coding, sendCompressible } from './responses.ts';
import type { Endpoint } from './endpoints.ts';
import { unknownPath } from './http-error.ts';

/**
 * Creates the endpoints of the pages for browsers, and the page at the GraphQL path, if
 * GRAPHQL_EXPLORER is on. The home page compares these REST endpoints with their GraphQL
 * equivalents. Throws if the pages are not built.
 */
export function pageEndpoints(config: Config, routes: readonly Route[]) {
  if (!config.graphqlExplorer) return undefined;
  const { pages, graphqlPage, bundles, directory } = openPages({
    directory: fileURLToPath(new URL('../../', import.meta.url)),
    basePath: config.basePath,
    version: VERSION,
    hasStorefront: config.servesStorefront,
    demoUsers: config.databaseUrl === undefined ? demoUsers : [],
    endpoints: routes,
  });
  return {
    endpoints: [
      // Before the storefront, which has all other paths under its own.
      ...bundles.map((bundle) => assetsEndpoint(config, bundle)),
      ...pages.map(({ path, render }) => endpoint(path, pageHandler(config, render))),
      endpoint('/favicon.ico', (_req, res) =>
        res.sendFile('favicon.svg', { root: directory, maxAge: '1d' }),
      ),
    ],
    sendGraphqlPage: pageHandler(config, graphqlPage),
  };
}

function endpoint(path: string, handler: RequestHandler): Endpoint {
  return { method: 'GET', path, handlers: [handler] };
}

function pageHandler(config: Config, render: Render): RequestHandler {
  return (_req, res) => {
    const { html, policy } = render();
    res.set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': policy });
    return sendCompressible(res, config, { body: html }, 'text/html; charset=utf-8');
  };
}

/**
 * Returns the endpoint of the files in `assets/` of a bundle, whose names have a hash of their
 * content. The build compressed the longer ones into `br/` and `gzip/`.
 */
function assetsEndpoint({ compression }: Config, { path, directory }: Bundle): Endpoint {
  const filesIn = (root: string, coding?: Coding) =>
    express.static(`${root}/assets`, {
      immutable: true,
      maxAge: '1y',
      index: false,
      redirect: false,
      // A range of one coding means nothing in another.
      acceptRanges: false,
      setHeaders: (res) => void (coding && res.setHeader('Content-Encoding', coding)),
    });
  const plain = filesIn(directory);
  const coded = {
    br: filesIn(`${directory}/br`, 'br'),
    gzip: filesIn(`${directory}/gzip`, 'gzip'),
  };
  return endpoint(`${path}/assets/{file}`, (req, res, next) => {
    // The rest depends on the reader.
    res.locals.exclude();
    req.url = `/${String(req.params['file'])}`;
    const sendPlain = (error?: unknown) =>
      error ? next(error) : plain(req, res, (failure) => next(failure ?? unknownPath()));
    if (compression) res.vary('Accept-Encoding');
    const coding = compression && acceptedCoding(req);
    if (coding) coded[coding](req, res, sendPlain);
    else sendPlain();
  });
}
