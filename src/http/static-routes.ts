import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Exchange } from './exchange.ts';
import type { Path } from './paths.ts';

/** Makes the exchange of a request whose path has been found. */
export type MakeExchange = (req: IncomingMessage, res: ServerResponse, params: Record<string, string>) => Exchange;

/**
 * Finds the path of a request without the router, where the path is written the way that the interface writes it and holds
 * nothing that would have to be decoded. Everything else goes on to the router, which knows the other ways.
 */
export function directly(paths: readonly Path[], exchangeOf: MakeExchange, router: RequestListener): RequestListener {
  const exact = new Map<string, Path>();
  /** By what stands before the one parameter that ends them. */
  const byPrefix = new Map<string, { path: Path; parameter: string }>();
  for (const path of paths) {
    const [, prefix = path.path, parameter] = /^(.*\/)\{(\w+)\}$/.exec(path.path) ?? [];
    if (parameter !== undefined) byPrefix.set(prefix, { path, parameter });
    else for (const form of [prefix, `${prefix}/`]) exact.set(form, path);
  }
  return (req, res) => {
    const { url = '' } = req;
    const end = url.indexOf('?');
    const asked = end < 0 ? url : url.slice(0, end);
    const known = exact.get(asked);
    if (known) return void known.answer(exchangeOf(req, res, {}));
    const at = asked.lastIndexOf('/') + 1;
    const found = byPrefix.get(asked.slice(0, at));
    const value = asked.slice(at);
    if (found && /^[\w-]+$/.test(value)) return void found.path.answer(exchangeOf(req, res, { [found.parameter]: value }));
    return router(req, res);
  };
}
