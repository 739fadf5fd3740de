import { STATUS_CODES, type IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Response } from 'express';
import type { Logger } from 'pino';
import type { FieldError } from '../core/errors.ts';
import { LogThrottle } from '../core/log-throttle.ts';
import { graphqlExtensions, mappingOf, type ErrorMapping } from './error-map.ts';
import { HttpError, visibleError } from './http-error.ts';
import { JSON_TYPE, sendBody } from './responses.ts';

const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
/** The media types of responses of the GraphQL API, the default first. */
const GRAPHQL_TYPES = [JSON_TYPE, 'application/graphql-response+json; charset=utf-8'];

const INTERNAL_ERROR = new HttpError(500, 'Internal server error');

/** The member that holds the error of an endpoint: `errors` in the shape of GraphQL. */
export type ErrorKey = 'detail' | 'data' | 'errors';

/**
 * Returns the function that sends errors (docs/rest.md): a visible error as it is, an internal error
 * as 500 with only an id that is in the log. It destroys the connection instead if the head of the
 * response has been sent. `keyOf` returns the error key for a path that no endpoint handled.
 */
export function errorSender(parent: Logger, keyOf: (path: string) => ErrorKey) {
  return (res: Response, error: unknown): void => {
    const { req } = res;
    const { requestId, record, signal, errorKey = keyOf(req.path), isOauth } = res.locals;
    const log = () => parent.child({ requestId, endpoint: record.endpoint });
    if (res.headersSent) {
      if (signal.aborted || res.writableFinished) return;
      log().error({ err: error }, 'Response interrupted');
      record.end = 'broken';
      return void res.destroy();
    }
    const sent = visibleError(error) ?? INTERNAL_ERROR;
    const mapping = mappingOf(sent, errorKey);
    const { status, message = sent.message, headers, graphql } = mapping;
    const { code, retryAfter } = sent;
    const fields = code === 'BAD_USER_INPUT' ? sent.fields : [];
    if (sent === INTERNAL_ERROR) log().error({ err: error }, 'Request failed');
    // Cancelled work of a client that left fails with the same error.
    else if (code === 'TIMEOUT' && !res.destroyed)
      log().warn({ event: 'request.timeout' }, 'Request timed out');
    else if (code === 'UNAVAILABLE' && sent !== error && !signal.aborted)
      logUnavailable(log(), error);
    // The headers of a response that could not be sent do not apply to the error.
    for (const name of ['ETag', 'Last-Modified', 'Content-Encoding']) res.removeHeader(name);
    res.set({ 'Cache-Control': 'no-store', ...headers });
    if (retryAfter !== undefined) res.set('Retry-After', String(retryAfter));
    record.errors = [errorKey === 'errors' ? (graphql ?? code) : code];
    const oauth = isOauth ? oauthMembers(mapping, message, fields) : {};
    if (errorKey === 'errors') {
      const id = sent === INTERNAL_ERROR ? { requestId } : {};
      const errors = [{ message, extensions: { ...graphqlExtensions(sent), ...id } }];
      sendBody(res, status, JSON.stringify({ errors }), graphqlTypeFor(req));
    } else if (req.accepts().includes('application/problem+json')) {
      const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail: message };
      const errors = fields.map(({ part: _part, ...entry }) => entry);
      const more = { code, ...(errors.length > 0 && { errors }), ...oauth };
      sendBody(res, status, JSON.stringify({ ...problem, ...more }), PROBLEM_TYPE);
    } else {
      const input = ['GET', 'HEAD'].includes(req.method) ? 'query' : 'body';
      const detail = fields.map(({ field, type, message: msg, part = input }) => {
        return { type, loc: [part, ...(field === '' ? [] : field.split('.'))], msg };
      });
      // Fields are always listed under `detail`, the format of the original services.
      const isField = detail.length > 0;
      const key = isField || mapping.aboutCaller ? 'detail' : errorKey;
      sendBody(res, status, JSON.stringify({ [key]: isField ? detail : message, ...oauth }));
    }
  };
}

// RFC 6749, 5.2.
function oauthMembers(mapping: ErrorMapping, message: string, fields: readonly FieldError[]) {
  const {
    status,
    oauth = status === 429 || status >= 500 ? 'temporarily_unavailable' : 'invalid_request',
  } = mapping;
  const isUnknownGrant = fields.some(
    ({ field, type }) => field === 'grant_type' && type === 'value_error',
  );
  return {
    error: isUnknownGrant ? 'unsupported_grant_type' : oauth,
    // RFC 6749 allows neither quotation marks nor backslashes in a description.
    error_description: message.replace(/[^ !#-[\]-~]/g, "'"),
  };
}

/**
 * Returns the media type of a GraphQL response, as Apollo Server chooses it: the client's
 * preference, or JSON for a client that accepts neither (GraphQL over HTTP, 6.1).
 */
export function graphqlTypeFor(req: Pick<IncomingMessage, 'headers'>): string {
  const [chosen] = [accepts(req as IncomingMessage).type(GRAPHQL_TYPES)].flat();
  return chosen || JSON_TYPE;
}

const outages = new LogThrottle<unknown>();

/** Logs why a database request failed, throttled because every request fails during an outage. */
export function logUnavailable(log: Logger, err: unknown): void {
  outages.record(err, (last, times) => log.error({ err: last, times }, 'Database unavailable'));
}
