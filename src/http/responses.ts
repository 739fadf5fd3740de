import { hash } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Response } from 'express';
import fresh from 'fresh';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import type { FieldError } from '../core/errors.ts';
import { LogThrottle } from '../core/log-throttle.ts';
import { CREDENTIAL_HEADERS } from './credentials.ts';
import { graphqlExtensions, mappingOf, type ErrorMapping } from './error-map.ts';
import { HttpError, visibleError } from './http-error.ts';

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
// A request with credentials, even invalid ones, must not get a response cached for one without.
const VARY = CREDENTIAL_HEADERS.join(', ');
/** `Vary` of the GraphQL API, whose responses also depend on the media type. */
export const VARY_BY_TYPE = `Accept, ${VARY}`;
/** The media types of responses of the GraphQL API, the default first. */
const GRAPHQL_TYPES = [JSON_TYPE, 'application/graphql-response+json; charset=utf-8'];

const INTERNAL_ERROR = new HttpError(500, 'Internal server error');

/** The member that holds the error of an endpoint: `errors` in the shape of GraphQL. */
export type ErrorKey = 'detail' | 'data' | 'errors';

/** Sends a response, unless the request was already rejected, for example at its timeout. */
export function sendBody(
  res: Response,
  status: number,
  body: string | Buffer,
  type: string = JSON_TYPE,
): void {
  if (res.headersSent || res.req.socket.destroyed) return;
  res.statusCode = status;
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.end(body);
}

/**
 * Sends 304 and returns true if the client has the response with this tag (RFC 9110, 13.1.2). Sets
 * the caching headers of a response that is the same for all callers without credentials
 * (RFC 9111, 5.2.2): cacheable for PUBLIC_MAX_AGE_SECONDS, or revalidated each time if that is 0.
 */
export function sendIfNotModified(
  res: Response,
  { publicMaxAgeSeconds }: Config,
  tag: string,
  vary = VARY,
): boolean {
  res.setHeader('ETag', tag);
  res.setHeader(
    'Cache-Control',
    publicMaxAgeSeconds === 0 ? 'public, no-cache' : `public, max-age=${publicMaxAgeSeconds}`,
  );
  appendVary(res, vary);
  const clientTags = res.req.headers['if-none-match'];
  // `Cache-Control` of a request is for caches on the way. `fetch` sends no-cache with every tag.
  if (clientTags === undefined || !fresh({ 'if-none-match': clientTags }, { etag: tag }))
    return false;
  if (!res.headersSent) res.status(304).end();
  return true;
}

/** Adds these names to `Vary` (RFC 9110, 12.5.5), faster than Express does. */
export function appendVary(res: Response, names: string): void {
  const present = res.getHeader('Vary');
  res.setHeader('Vary', present === undefined ? names : `${String(present)}, ${names}`);
}

/**
 * Returns the entity tag of a text: weak, because compressed forms have the same (RFC 9110, 8.8.1).
 */
export function tagOf(text: string): string {
  return `W/"${hash('sha256', text, 'base64url')}"`;
}

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
      req.socket.destroy();
      return;
    }
    const sent = visibleError(error) ?? INTERNAL_ERROR;
    const mapping = mappingOf(sent, errorKey);
    const { status, message = sent.message, headers, graphql } = mapping;
    const { code, retryAfter } = sent;
    const fields = code === 'BAD_USER_INPUT' ? sent.fields : [];
    if (sent === INTERNAL_ERROR) log().error({ err: error }, 'Request failed');
    else if (code === 'TIMEOUT') log().warn({ event: 'request.timeout' }, 'Request timed out');
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
