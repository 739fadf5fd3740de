import type { Route } from '../api/route.ts';
import type { Config } from '../core/config.ts';
import type { RequestHandler } from 'express';
import type { Endpoint } from '../http/endpoints.ts';
import { EXPLORERS, readBundle } from './bundle.ts';
import { assetsEndpoint, endpoint, sendFile } from './files.ts';
import { homeBody } from './home.ts';
import { markup } from './markup.ts';
import { createPageHandler, type Page } from './page.ts';
import { storefrontEndpoints } from './storefront.ts';
import { usageBody } from './usage.ts';

/** The pages for browsers. */
export interface Pages {
  endpoints: Endpoint[];
  /** Sends the page at the GraphQL path. */
  sendGraphqlPage: RequestHandler;
}

/** Origin of the Apollo Sandbox frame. */
const SANDBOX = 'https://sandbox.embed.apollographql.com';

const NOSCRIPT = markup`<noscript><p class="notice">This page needs JavaScript. The API does not.</p></noscript>`;
const EXPLORER = markup`<main id="explorer"></main>
${NOSCRIPT}`;
// Scalar makes the main landmark.
const REFERENCE = markup`<div id="explorer"></div>
${NOSCRIPT}`;

// The editor creates styles at run time, and parses documents in workers.
const EDITOR = {
  'style-src': "'self' 'unsafe-inline'",
  'font-src': "'self' data:",
  'worker-src': "'self'",
};

// Scalar creates style elements at run time, which get the nonce (web/docs.ts).
const referencePolicy = (nonce: string) => ({ 'style-src': `'self' 'nonce-${nonce}'` });

/**
 * Creates the pages if GRAPHQL_EXPLORER is on; the home page compares these REST endpoints with
 * their GraphQL equivalents. Throws ConfigError if the pages are not built.
 */
export function openPages(config: Config, endpoints: readonly Route[]): Pages | undefined {
  if (!config.graphqlExplorer) return undefined;
  const bundle = readBundle(EXPLORERS);
  const handlerOf = (page: Page): RequestHandler => createPageHandler(config, bundle, page);
  const pages: Page[] = [
    { path: '/', title: 'Shopfront', entry: 'home.ts', body: homeBody(config, endpoints) },
    {
      path: '/graphiql',
      title: 'GraphiQL – Shopfront',
      entry: 'graphiql.ts',
      body: EXPLORER,
      policy: () => EDITOR,
    },
    {
      path: '/docs',
      title: 'REST reference – Shopfront',
      entry: 'docs.ts',
      body: REFERENCE,
      policy: referencePolicy,
    },
    {
      path: '/usage',
      title: 'REST usage – Shopfront',
      entry: 'usage.ts',
      body: usageBody(config),
    },
  ];
  return {
    endpoints: [
      ...pages.map((page) => endpoint(page.path, handlerOf(page))),
      endpoint('/favicon.ico', (_req, res) =>
        sendFile({ directory: bundle.directory, name: 'favicon.svg' }, res, false),
      ),
      assetsEndpoint(config, bundle),
      ...(config.servesStorefront ? storefrontEndpoints(config) : []),
    ],
    sendGraphqlPage: handlerOf({
      path: '/graphql',
      title: 'GraphQL – Shopfront',
      entry: 'graphql.ts',
      body: EXPLORER,
      policy: () => ({ ...EDITOR, 'frame-src': SANDBOX }),
    }),
  };
}
