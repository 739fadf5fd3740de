import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Exchange } from './exchange.ts';
import type { Path } from './paths.ts';

/** Creates the exchange of a request whose path has been found. */
export type MakeExchange = (
  req: IncomingMessage,
  res: ServerResponse,
  params: Record<string, string>,
) => Exchange;

/**
 * Finds the path of a request without the router if the URL has the form of the interface and needs
 * no decoding. Passes other requests to the router.
 */
export function staticRoutes(
  paths: readonly Path[],
  exchangeOf: MakeExchange,
  router: RequestListener,
): RequestListener {
  const exact = new Map<string, Path>();
  /** Paths that end in their only parameter, by the prefix before it. */
  const byPrefix = new Map<string, { path: Path; parameter: string }>();
  for (const path of paths) {
    const [, prefix = path.path, parameter] = /^(.*\/)\{(\w+)\}$/.exec(path.path) ?? [];
    if (parameter !== undefined) byPrefix.set(prefix, { path, parameter });
    else for (const form of [prefix, `${prefix}/`]) exact.set(form, path);
  }
  return (req, res) => {
    const { url = '' } = req;
    const end = url.indexOf('?');
    const pathname = end < 0 ? url : url.slice(0, end);
    const exactPath = exact.get(pathname);
    if (exactPath) return void exactPath.handle(exchangeOf(req, res, {}));
    const valueStart = pathname.lastIndexOf('/') + 1;
    const prefixed = byPrefix.get(pathname.slice(0, valueStart));
    const value = pathname.slice(valueStart);
    if (prefixed && /^[\w-]+$/.test(value))
      return void prefixed.path.handle(exchangeOf(req, res, { [prefixed.parameter]: value }));
    return router(req, res);
  };
}
