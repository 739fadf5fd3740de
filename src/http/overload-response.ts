import type { RequestListener } from 'node:http';
import { features } from '../features.ts';
import { graphqlTypeFor, JSON_TYPE } from './responses.ts';
import { endAfterBody, mayExceedDiscardLimit } from './body.ts';
import { markClosing } from './closing-connection.ts';
import { EXPOSED_HEADERS } from './common-headers.ts';
import { ERRORS, graphqlExtensions } from './error-map.ts';
import { unavailableError } from './http-error.ts';
import { hasBody } from './request-headers.ts';
import type { Dependencies } from './dependencies.ts';
import { requestIdOf } from '../telemetry/request-id.ts';

/**
 * Returns a listener that rejects requests with 503 at minimal cost: the response of each API is
 * prepared, and nothing else is checked.
 */
export function overloadResponder({
  config,
  isDraining,
  observe,
}: Pick<Dependencies, 'config' | 'isDraining' | 'observe'>): RequestListener {
  const error = unavailableError();
  const { status } = ERRORS[error.code];
  const { basePath } = config;
  const graphqlPath = `${basePath}/graphql`;
  const endpoints = features.flatMap(({ routes }) => routes?.(config) ?? []);
  const sessionEndpoints = endpoints.filter(({ errorKey }) => errorKey === 'data');
  const sessionPaths = new Set(
    sessionEndpoints.flatMap(({ path }) => [basePath + path, `${basePath}${path}/`]),
  );
  const prepare = (body: object) => {
    const text = JSON.stringify(body);
    // Only the common headers that matter for this response: each header adds cost.
    const headers = {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': EXPOSED_HEADERS,
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': String(Buffer.byteLength(text)),
      'Cache-Control': 'no-store',
      'Retry-After': String(error.retryAfter),
    };
    return { text, headers: Object.entries(headers).flat() };
  };
  const rest = prepare({ detail: error.message });
  const session = prepare({ data: error.message });
  const graphql = prepare({
    errors: [{ message: error.message, extensions: graphqlExtensions(error) }],
  });
  return (req, res) => {
    const { url = '' } = req;
    const api = url.startsWith(graphqlPath) ? 'graphql' : 'rest';
    const { text, headers } =
      api === 'graphql' ? graphql : sessionPaths.has(pathOf(url)) ? session : rest;
    const type = api === 'graphql' ? graphqlTypeFor(req) : JSON_TYPE;
    const requestId = requestIdOf(req.headers);
    const allHeaders = [...headers, 'Content-Type', type, 'X-Request-Id', requestId];
    // Node discards a short body and the connection stays open: a new one would cost more.
    const isLast = isDraining() || mayExceedDiscardLimit(req);
    if (isLast) {
      allHeaders.push('Connection', 'close');
      markClosing(req.socket);
    }
    res.writeHead(status, allHeaders);
    if (isLast && hasBody(req)) endAfterBody(req, res, text);
    else res.end(text);
    // Without the endpoint, which would need a lookup.
    observe(
      {
        requestId,
        method: req.method ?? '',
        api,
        status,
        errors: [error.code],
        bytes: text.length,
        end: 'answered',
      },
      0,
    );
  };
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}
