import type { RequestListener } from 'node:http';
import { features } from '../features.ts';
import { graphqlTypeFor, JSON_TYPE } from './responses.ts';
import { endAfterBody, mayBeLong } from './body.ts';
import { EXPOSED } from './common-headers.ts';
import { ERRORS, graphqlExtensions } from './error-map.ts';
import { unavailable } from './http-error.ts';
import { closeAfterLast } from './in-flight.ts';
import { hasBody } from './request-headers.ts';
import type { Services } from './dependencies.ts';
import { requestIdOf } from '../telemetry/request-id.ts';

/** Makes what refuses a request as cheaply as can be: with 503 in the words of its door, made beforehand, and without looking at anything else. */
export function refuser({ config, isDraining, observe }: Pick<Services, 'config' | 'isDraining' | 'observe'>): RequestListener {
  const error = unavailable();
  const { status } = ERRORS[error.code];
  const { basePath } = config;
  const graphqlPath = `${basePath}/graphql`;
  const rows = features.flatMap(({ routes }) => routes?.(config) ?? []);
  const sessionRows = rows.filter(({ errorKey }) => errorKey === 'data');
  const sessionPaths = new Set(sessionRows.flatMap(({ path }) => [basePath + path, `${basePath}${path}/`]));
  const answerOf = (body: object) => {
    const text = JSON.stringify(body);
    // Of the headers that all answers have, those that matter for this one: each costs a part of what is to be saved.
    const headers = {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': EXPOSED,
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': String(Buffer.byteLength(text)),
      'Cache-Control': 'no-store',
      'Retry-After': String(error.retryAfter),
    };
    return { text, headers: Object.entries(headers).flat() };
  };
  const rest = answerOf({ detail: error.message });
  const session = answerOf({ data: error.message });
  const graphql = answerOf({ errors: [{ message: error.message, extensions: graphqlExtensions(error) }] });
  return (req, res) => {
    const { url = '' } = req;
    const door = url.startsWith(graphqlPath) ? 'graphql' : 'rest';
    const { text, headers } = door === 'graphql' ? graphql : sessionPaths.has(pathOf(url)) ? session : rest;
    const type = door === 'graphql' ? graphqlTypeFor(req) : JSON_TYPE;
    const requestId = requestIdOf(req.headers);
    const own = [...headers, 'Content-Type', type, 'X-Request-Id', requestId];
    // A body that is not long is discarded by Node, and the connection stays: to open another one costs more.
    const isLast = (isDraining() || mayBeLong(req)) && closeAfterLast(res);
    if (isLast) own.push('Connection', 'close');
    res.writeHead(status, own);
    if (isLast && hasBody(req)) endAfterBody(req, res, text);
    else res.end(text);
    // Without its row, which would have to be looked for.
    observe({ requestId, method: req.method ?? '', door, status, errors: [error.code], bytes: text.length, end: 'answered' }, 0);
  };
}

function pathOf(url: string): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}
