import type { IncomingMessage, RequestListener } from 'node:http';
import { graphqlTypeFor, JSON_TYPE } from './answers.ts';
import { ERRORS, graphqlExtensions } from './error-map.ts';
import { unavailable } from './http-error.ts';
import type { Services } from './services.ts';
import { requestIdOf } from './telemetry/request-id.ts';

/** A body up to this length is read and thrown away, so that the connection stays; to open another costs more. */
const MAX_UNREAD = 100 * 1024;

/** Makes what refuses a request as cheaply as can be: with 503 in the words of its door, made beforehand, and without looking at anything else. */
export function refuser({ config, isDraining, observe }: Pick<Services, 'config' | 'isDraining' | 'observe'>): RequestListener {
  const error = unavailable();
  const { status } = ERRORS[error.code];
  const graphqlPath = `${config.basePath}/graphql`;
  const answerOf = (body: object) => {
    const text = JSON.stringify(body);
    // Of the headers that all answers have, those that matter for this one: each costs a part of what is to be saved.
    const headers = {
      'Access-Control-Allow-Origin': '*',
      'X-Content-Type-Options': 'nosniff',
      'Content-Length': String(Buffer.byteLength(text)),
      'Cache-Control': 'no-store',
      'Retry-After': String(error.retryAfter),
    };
    return { text, headers: Object.entries(headers).flat() };
  };
  const rest = answerOf({ detail: error.message });
  const graphql = answerOf({ errors: [{ message: error.message, extensions: graphqlExtensions(error) }] });
  return (req, res) => {
    const door = req.url?.startsWith(graphqlPath) === true ? 'graphql' : 'rest';
    const { text, headers } = door === 'graphql' ? graphql : rest;
    const type = door === 'graphql' ? graphqlTypeFor(req) : JSON_TYPE;
    const requestId = requestIdOf(req.headers);
    const own = [...headers, 'Content-Type', type, 'X-Request-Id', requestId];
    if (isDraining() || mayBeLong(req)) own.push('Connection', 'close');
    res.writeHead(status, own);
    res.end(text);
    // Without its row, which would have to be looked for.
    observe({ requestId, method: req.method ?? '', door, status, errors: [error.code], bytes: text.length, end: 'answered' }, 0);
  };
}

function mayBeLong({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > MAX_UNREAD;
}
