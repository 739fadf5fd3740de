import { hash } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Response } from 'express';
import fresh from 'fresh';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { DomainError, type RequestPart } from '../core/errors.ts';
import { LogThrottle } from '../core/log-throttle.ts';
import { CREDENTIAL_HEADERS } from './credentials.ts';
import { ERRORS, graphqlExtensions, type ErrorMapping } from './error-map.ts';
import { HttpError, visibleError } from './http-error.ts';

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
// A request with credentials, even invalid ones, must not get a response cached for one without.
const VARY = CREDENTIAL_HEADERS.join(', ');
/** `Vary` of the GraphQL API, whose responses also depend on the media type. */
export const VARY_BY_TYPE = `Accept, ${VARY}`;
/** Length of the hash in a tag, in characters of 6 bits: long enough to avoid collisions. */
const TAG_LENGTH = 27;
/** The media types of responses of the GraphQL API, the default first. */
const GRAPHQL_TYPES = [JSON_TYPE, 'application/graphql-response+json; charset=utf-8'];

/** Error that clients get instead of an internal error. */
export const INTERNAL_ERROR = new HttpError(500, 'Internal server error');

/** `error` of the token endpoints by status (RFC 6749, 5.2), if it is not invalid_request. */
const OAUTH_CODES: Readonly<Record<number, string>> = {
  429: 'temporarily_unavailable',
  500: 'server_error',
  503: 'temporarily_unavailable',
};

/** Error format of an endpoint. */
export interface ErrorFormat {
  /** Name of the endpoint in the log. */
  endpoint?: string;
  /** The member that holds the error; `errors` in the shape of GraphQL. */
  errorKey: 'detail' | 'data' | 'errors';
  /** Origin of input that the services reject, rather than the endpoint's schemas. */
  inputPart: RequestPart;
  /** Whether errors also have `error` and `error_description` (RFC 6749, 5.2). */
  isOauth?: boolean;
}

/** Response to an error, with its body in the format of the endpoint and as an RFC 9457 problem. */
export interface ErrorResponse {
  status: number;
  code: string;
  headers: Readonly<Record<string, string>>;
  json: object;
  problem: object;
}

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

/** Adds these names to `Vary` (RFC 9110, 12.5.5). */
export function appendVary(res: Response, names: string): void {
  const present = res.getHeader('Vary');
  res.setHeader('Vary', present === undefined ? names : `${String(present)}, ${names}`);
}

/**
 * Returns the entity tag of a text: weak, because compressed forms have the same (RFC 9110, 8.8.1).
 */
export function tagOf(text: string): string {
  return `W/"${hash('sha256', text, 'base64url').slice(0, TAG_LENGTH)}"`;
}

/** Sends an error as the response. */
export type SendError = (res: Response, error: unknown) => void;

/**
 * Returns the function that sends errors (docs/rest.md): a visible error as it is, an internal error
 * as 500 with only an id that is in the log. It destroys the connection instead if the head of the
 * response has been sent. `formatOf` returns the format for a path that no endpoint handled.
 */
export function errorSender(parent: Logger, formatOf: (path: string) => ErrorFormat): SendError {
  return (res, error) => {
    const { req } = res;
    const { requestId, record, signal, errorFormat = formatOf(req.path) } = res.locals;
    const log = () => parent.child({ requestId, endpoint: errorFormat.endpoint });
    if (res.headersSent) {
      if (signal.aborted || res.writableFinished) return;
      log().error({ err: error }, 'Response interrupted');
      record.end = 'broken';
      req.socket.destroy();
      return;
    }
    const visible = visibleError(error);
    const response = errorResponse(visible ?? INTERNAL_ERROR, errorFormat);
    const { status, code, headers, json, problem } = response;
    if (!visible) log().error({ err: error }, 'Request failed');
    else if (code === 'TIMEOUT') log().warn({ event: 'request.timeout' }, 'Request timed out');
    else if (code === 'UNAVAILABLE' && visible !== error && !signal.aborted)
      logUnavailable(log(), error);
    // The headers of a response that could not be sent do not apply to the error.
    for (const name of ['ETag', 'Last-Modified', 'Content-Encoding']) res.removeHeader(name);
    res.set({ 'Cache-Control': 'no-store', ...headers });
    if (errorFormat.errorKey === 'errors') {
      const { message, extensions } = visible
        ? {
            message: visible.message,
            extensions: visible instanceof DomainError ? graphqlExtensions(visible) : { code },
          }
        : maskedError(requestId);
      record.errors = [String(extensions['code'])];
      const body = JSON.stringify({ errors: [{ message, extensions }] });
      return sendBody(res, status, body, graphqlTypeFor(req));
    }
    record.errors = [code];
    if ([accepts(req).types()].flat().includes('application/problem+json'))
      sendBody(res, status, JSON.stringify(problem), PROBLEM_TYPE);
    else sendBody(res, status, JSON.stringify(json));
  };
}

/** Returns the response of an endpoint to an error. */
export function errorResponse(error: DomainError | HttpError, format: ErrorFormat): ErrorResponse {
  const { errorKey, inputPart, isOauth } = format;
  const isDomainError = error instanceof DomainError;
  const mapping: ErrorMapping = isDomainError ? ERRORS[error.code] : error;
  const { sessionRouter = mapping, aboutCaller, oauth: oauthCode } = mapping;
  const response = errorKey === 'data' ? sessionRouter : mapping;
  const { status, message = error.message, headers } = response;
  const reason = STATUS_CODES[status];
  const code = isDomainError ? error.code : (reason ?? 'ERROR').toUpperCase().replace(/\W+/g, '_');
  const fields = code === 'BAD_USER_INPUT' && isDomainError ? error.fields : undefined;
  const retryAfter = isDomainError ? error.retryAfter : undefined;
  const isUnknownGrant = fields?.some(
    ({ field, type }) => field === 'grant_type' && type === 'value_error',
  );
  const oauthMembers = isOauth && {
    error: isUnknownGrant
      ? 'unsupported_grant_type'
      : (oauthCode ?? OAUTH_CODES[status] ?? 'invalid_request'),
    // RFC 6749, 5.2, allows neither quotation marks nor backslashes in a description.
    error_description: message.replace(/[^ !#-[\]-~]/g, "'"),
  };
  const entries = fields?.map(({ field, type, message: msg, part = inputPart }) => {
    const path = field === '' ? [] : field.split('.');
    return {
      type,
      loc: [part, ...path.map((name) => (/^\d+$/.test(name) ? Number(name) : name))],
      msg,
    };
  });
  // Fields are always listed under `detail`, the format of the original services.
  const key = fields || aboutCaller ? 'detail' : errorKey;
  return {
    status,
    code,
    headers: { ...headers, ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }) },
    json: { [key]: entries ?? message, ...oauthMembers },
    problem: {
      type: 'about:blank',
      title: reason,
      status,
      detail: message,
      code,
      errors: fields?.map(({ field, type, message: text }) => ({ field, type, message: text })),
      ...oauthMembers,
    },
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

/** Returns an internal error for clients of GraphQL, with only its id in the log. */
export function maskedError(requestId: string) {
  return {
    message: INTERNAL_ERROR.message,
    extensions: { code: 'INTERNAL_SERVER_ERROR', requestId },
  };
}
