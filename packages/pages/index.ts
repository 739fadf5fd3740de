import { join } from 'node:path';
import { readBundle, type Bundle } from './bundle.ts';
import type { RestEndpoint } from './comparisons.ts';
import { homeBody } from './home.ts';
import { markup } from './markup.ts';
import { pageRenderer, type Page } from './page.ts';
import type { DemoUser } from './settings.ts';
import { usageBody } from './usage.ts';

export type { Bundle } from './bundle.ts';
export { compareAnswers, type Correspondence } from './correspondence.ts';

/** What the pages show. */
export interface PagesOptions {
  /** Directory with the built pages in `web` and the storefront in `storefront`. */
  directory: string;
  /** BASE_PATH: the path before every other path. */
  basePath: string;
  /** Version of the server. */
  version: string;
  /** Whether the storefront is served, too. */
  hasStorefront: boolean;
  /** Users that the pages offer for sign-in, with their passwords. */
  demoUsers: readonly DemoUser[];
  /** REST endpoints that the home page compares with their GraphQL equivalents. */
  endpoints: readonly RestEndpoint[];
}

/** Renders a page: its HTML and its Content-Security-Policy, with a new nonce. */
export type Render = ReturnType<typeof pageRenderer>;

/** The pages for browsers. Paths are under BASE_PATH, with parameters in braces. */
export interface Pages {
  pages: { path: string; render: Render }[];
  /** The page at the path of the GraphQL API. */
  graphqlPage: Render;
  /** Scripts and styles of the pages. */
  bundles: Bundle[];
  /** Directory with `favicon.svg`. */
  directory: string;
}

const SHOP = '/shop';
/** Paths of the storefront, all of which are one document: the script shows the page of the path. */
const SHOP_PATHS = [SHOP, `${SHOP}/{page}`, `${SHOP}/{page}/{id}`, `${SHOP}/{page}/{id}/{action}`];

/** Origin of the Apollo Sandbox frame. */
const SANDBOX = 'https://sandbox.embed.apollographql.com';

const NOSCRIPT = markup`<noscript><p class="notice">This page needs JavaScript. The API does not.</p></noscript>`;
const EXPLORER = markup`<main id="explorer"></main>
${NOSCRIPT}`;

// The editor creates styles at run time, and parses documents in workers.
const EDITOR = {
  'style-src': "'self' 'unsafe-inline'",
  'font-src': "'self' data:",
  'worker-src': "'self'",
};

/** Reads the built pages. Throws if they are not built. */
export function openPages(options: PagesOptions): Pages {
  const bundle = readBundle(join(options.directory, 'web'));
  const pages: Page[] = [
    { path: '/', title: 'Shopfront', entry: 'home.ts', body: homeBody(options) },
    {
      path: '/graphiql',
      title: 'GraphiQL – Shopfront',
      entry: 'graphiql.ts',
      body: EXPLORER,
      policy: EDITOR,
    },
    {
      path: '/docs',
      title: 'REST reference – Shopfront',
      entry: 'docs.ts',
      body: EXPLORER,
    },
    {
      path: '/usage',
      title: 'REST usage – Shopfront',
      entry: 'usage.ts',
      body: usageBody(options.demoUsers),
    },
  ];
  const render = (page: Page) => pageRenderer(options, bundle, page);
  const storefront = options.hasStorefront
    ? readBundle(join(options.directory, 'storefront'), SHOP)
    : undefined;
  return {
    pages: [
      ...pages.map((page) => ({ path: page.path, render: render(page) })),
      ...(storefront ? storefrontPages(options, storefront) : []),
    ],
    graphqlPage: render({
      path: '/graphql',
      title: 'GraphQL – Shopfront',
      entry: 'graphql.ts',
      body: EXPLORER,
      policy: { ...EDITOR, 'frame-src': SANDBOX },
    }),
    bundles: [bundle, ...(storefront ? [storefront] : [])],
    directory: bundle.directory,
  };
}

function storefrontPages(options: PagesOptions, bundle: Bundle): Pages['pages'] {
  const render = pageRenderer(options, bundle, {
    path: SHOP,
    title: 'Shopfront',
    entry: 'src/main.tsx',
    body: markup`<div id="app"></div>
<noscript>This shop needs JavaScript.</noscript>`,
    hasHeader: true,
  });
  return SHOP_PATHS.map((path) => ({ path, render }));
}
