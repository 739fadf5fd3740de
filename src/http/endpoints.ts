import { Router, type RequestHandler } from 'express';
import { METHODS, type Method } from '../api/route.ts';
import type { Api } from '../telemetry/request-record.ts';
import { preflight } from './headers.ts';
import { HttpError } from './http-error.ts';
import type { ErrorKey } from './error-response.ts';
import { describe } from './request-state.ts';

/** A path and a method that the server handles. */
export interface Endpoint {
  method: Method;
  /** With parameters in braces. A slash at the end is optional. */
  path: string;
  /** API of the endpoint, if any. */
  api?: Api;
  errorKey?: ErrorKey;
  /** Express handlers, in order. */
  handlers: readonly RequestHandler[];
}

/** Returns the router of the endpoints. Adds OPTIONS, and 405 with `Allow`. */
export function routerOf(endpoints: readonly Endpoint[]): Router {
  const router = Router({ caseSensitive: true });
  const byPath = Map.groupBy(endpoints, ({ path }) => path.replace(/\/$/, ''));
  for (const [path, atPath] of byPath) {
    const route = router.route(path === '' ? '/' : path.replace(/\{(\w+)\}/g, ':$1'));
    for (const endpoint of atPath) {
      const { method, handlers } = endpoint;
      const add = method.toLowerCase() as Lowercase<Method>;
      route[add](describe(endpoint, `${method} ${endpoint.path}`), ...handlers);
    }
    const methods = new Set<string>([...atPath.map(({ method }) => method), 'OPTIONS']);
    const allow = METHODS.filter((method) => methods.has(method)).join(', ');
    const [first] = atPath;
    if (first) route.all(describe(first, first.path));
    route.options(preflight(allow));
    route.all(({ method }) => {
      throw new HttpError(405, `Method "${method}" not allowed.`, { Allow: allow });
    });
  }
  return router;
}
