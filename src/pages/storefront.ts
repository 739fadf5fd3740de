import type { Config } from '../core/config.ts';
import type { Endpoint } from '../http/endpoints.ts';
import { readBundle, STOREFRONT } from './bundle.ts';
import { assetsEndpoint, endpoint } from './files.ts';
import { markup } from './markup.ts';
import { createPageHandler } from './page.ts';

const PATH = '/shop';

/** Paths of its pages, all of which are one document: the script shows the page of the path. */
const PAGES = [PATH, `${PATH}/{page}`, `${PATH}/{page}/{id}`, `${PATH}/{page}/{id}/{action}`];

/** Returns the endpoints of the storefront. Throws ConfigError if it is not built. */
export function storefrontEndpoints(config: Config): Endpoint[] {
  const bundle = readBundle(STOREFRONT, PATH);
  const handle = createPageHandler(config, bundle, {
    path: PATH,
    title: 'Shopfront',
    entry: 'src/main.tsx',
    body: markup`<div id="app"></div>
<noscript>This shop needs JavaScript.</noscript>`,
    hasHeader: true,
  });
  return [assetsEndpoint(config, bundle), ...PAGES.map((path) => endpoint(path, handle))];
}
