import type { Config } from '../core/config.ts';
import { codingFor } from '../http/compression.ts';
import type { Exchange } from '../http/exchange.ts';
import type { Endpoint } from '../http/paths.ts';
import { unknownPath } from '../rest/endpoint.ts';
import { readBundle } from './bundle.ts';
import { sendFile } from './files.ts';
import { homeBody } from './home.ts';
import { markup } from './markup.ts';
import { pageAnswerer, type Page } from './page.ts';

/** The pages for browsers, ready to be served. */
export interface Pages {
  endpoints: Endpoint[];
  /** Answers the page at the address of the GraphQL door. */
  answerGraphql: (exchange: Exchange) => Promise<void>;
}

/** Where the frame of Apollo Sandbox comes from. */
const SANDBOX = 'https://sandbox.embed.apollographql.com';

const EXPLORER = markup`<main id="explorer"></main>
<noscript><p class="notice">This page needs JavaScript. What it explores does not.</p></noscript>`;

// The editor makes its styles as it goes, and reads documents in workers.
const EDITOR = { 'style-src': "'self' 'unsafe-inline'", 'font-src': "'self' data:", 'worker-src': "'self'" };

/** Makes the pages, where GRAPHQL_EXPLORER is on. Throws ConfigError where they are not built. */
export function openPages(config: Config): Pages | undefined {
  if (!config.explorer) return undefined;
  const bundle = readBundle();
  const { directory, assets, compressed } = bundle;
  const answererOf = (page: Page): Endpoint['answer'] => pageAnswerer(config, bundle, page);
  const endpoint = (path: string, answer: Endpoint['answer']): Endpoint => ({ method: 'GET', path, errorKey: 'detail', answer });
  const pages: Page[] = [
    { path: '/', title: 'Shopfront', entry: 'home.ts', body: homeBody(config) },
    { path: '/graphiql', title: 'GraphiQL – Shopfront', entry: 'graphiql.ts', body: EXPLORER, policy: EDITOR },
    { path: '/docs', title: 'REST reference – Shopfront', entry: 'docs.ts', body: EXPLORER },
  ];
  return {
    endpoints: [
      ...pages.map((page) => endpoint(page.path, answererOf(page))),
      endpoint('/favicon.ico', (exchange) => sendFile({ directory, name: 'favicon.svg' }, exchange, false)),
      endpoint('/assets/{file}', async (exchange) => {
        const { file = '' } = exchange.params;
        // Only what was there at the start: no way of writing a path leads to anything else.
        if (!assets.has(file)) throw unknownPath();
        const coding = compressed.has(file) ? codingFor(exchange, config) : undefined;
        await sendFile(
          { directory: coding === undefined ? directory : `${directory}/${coding}`, name: `assets/${file}`, coding },
          exchange,
          true,
        );
      }),
    ],
    answerGraphql: answererOf({
      path: '/graphql',
      title: 'GraphQL – Shopfront',
      entry: 'graphql.ts',
      body: EXPLORER,
      policy: { ...EDITOR, 'frame-src': SANDBOX },
    }),
  };
}
