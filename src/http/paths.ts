import { METHODS, type Method } from '../api/route.ts';
import { sendError, type ErrorFormat } from './responses.ts';
import type { Exchange } from './exchange.ts';
import { HttpError } from './http-error.ts';
import { rejectInvalidHeaders } from './request-headers.ts';
import type { Dependencies } from './dependencies.ts';
import type { Api } from '../telemetry/request-record.ts';

/** Time for which browsers may cache a preflight response, in seconds: Chromium's maximum. */
const MAX_AGE_S = 7_200;
/** Header name (RFC 9110, 5.1). */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/** A path and a method that the server handles. */
export interface Endpoint {
  method: Method;
  /** With parameters in braces. A slash at the end is optional. */
  path: string;
  /** API of the endpoint, if any. */
  api?: Api;
  errorKey: ErrorFormat['errorKey'];
  handle: (exchange: Exchange) => Promise<void>;
}

/** One path with all its methods. */
export interface Path {
  /** Including BASE_PATH, with parameters in braces and no slash at the end. */
  path: string;
  handle: (exchange: Exchange) => Promise<void>;
}

/** Returns the paths of the endpoints. Adds OPTIONS, HEAD for GET, and 405 with `Allow`. */
export function pathsOf(dependencies: Dependencies, endpoints: readonly Endpoint[]): Path[] {
  const byPath = Map.groupBy(
    endpoints,
    ({ path }) => dependencies.config.basePath + path.replace(/\/$/, ''),
  );
  const { tracing } = dependencies;
  return [...byPath].map(([path, methods]) => {
    const handle = handlerOf(dependencies, methods);
    return { path, handle: tracing ? tracing.around(handle) : handle };
  });
}

function handlerOf({ log }: Dependencies, endpoints: readonly Endpoint[]): Path['handle'] {
  const byMethod = new Map(
    endpoints.map((endpoint) => [
      endpoint.method as string,
      { ...endpoint, name: `${endpoint.method} ${endpoint.path}` },
    ]),
  );
  const api = endpoints[0]?.api ?? 'other';
  const path = endpoints[0]?.path ?? '';
  const methods = METHODS.filter((method) => byMethod.has(method) || method === 'OPTIONS');
  const allow = methods.join(', ');
  const errorFormat: ErrorFormat = {
    errorKey: endpoints[0]?.errorKey ?? 'detail',
    inputPart: 'body',
  };
  return async (exchange) => {
    try {
      const { req, res, record } = exchange;
      record.api = api;
      record.endpoint = path;
      rejectInvalidHeaders(req);
      if (req.method === 'OPTIONS') {
        exchange.set({ ...corsHeaders(exchange, allow), 'Content-Length': '0' });
        exchange.start(200);
        res.end();
        return;
      }
      const endpoint =
        byMethod.get(req.method ?? '') ?? (req.method === 'HEAD' ? byMethod.get('GET') : undefined);
      if (!endpoint)
        throw new HttpError(405, `Method "${req.method}" not allowed.`, { Allow: allow });
      record.endpoint = endpoint.name;
      await endpoint.handle(exchange);
    } catch (error) {
      sendError(exchange, error, log, errorFormat);
    }
  };
}

// Returns the interface's three headers (4.5) and `Allow`. A preflight is granted all headers that
// it requests, because browsers send no credentials by themselves.
function corsHeaders({ req: { headers } }: Exchange, allow: string): Record<string, string> {
  const isPreflight =
    headers.origin !== undefined && headers['access-control-request-method'] !== undefined;
  const requested = isPreflight
    ? (headers['access-control-request-headers'] ?? '').split(',').map((name) => name.trim())
    : [];
  const allowed = requested.filter(
    (name) => HEADER_NAME.test(name) && name.toLowerCase() !== 'content-type',
  );
  return {
    Allow: allow,
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Allow-Methods': allow,
    'Access-Control-Allow-Headers': ['Content-Type', ...allowed].join(', '),
    ...(isPreflight && { 'Access-Control-Max-Age': String(MAX_AGE_S) }),
  };
}
