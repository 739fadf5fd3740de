import { hash } from 'node:crypto';
import { STATUS_CODES, type IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Response } from 'express';
import fresh from 'fresh';
import type { Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { DomainError, type FieldError, type RequestPart } from '../core/errors.ts';
import { LogThrottle } from '../core/log-throttle.ts';
import { CREDENTIAL_HEADERS } from './credentials.ts';
import { ERRORS, graphqlExtensions } from './error-map.ts';
import { HttpError, visibleError } from './http-error.ts';

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';
const INVALID_REQUEST = 'invalid_request';
const INTERNAL = 'INTERNAL_SERVER_ERROR';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
// A request with credentials, even invalid ones, must not get a response cached for one without.
const VARY = CREDENTIAL_HEADERS.join(', ');
/** `Vary` of the GraphQL API, whose responses also depend on the media type. */
export const VARY_BY_TYPE = `Accept, ${VARY}`;
/** Length of the hash in a tag, in characters of 6 bits: long enough to avoid collisions. */
const TAG_LENGTH = 27;
/** The media types of responses of the GraphQL API, the default first. */
const GRAPHQL_TYPES = [JSON_TYPE, 'application/graphql-response+json; charset=utf-8'];

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

interface ErrorResponse {
  status: number;
  code: string;
  text: string;
  key: ErrorFormat['errorKey'];
  fields?: readonly FieldError[];
  headers: Readonly<Record<string, string>>;
  /** `error` for a client of OAuth 2.0. */
  oauth: string;
  /** `extensions` for a client of GraphQL. */
  extensions: Record<string, unknown>;
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
    const response = errorResponseOf(res, error, errorFormat, log);
    record.errors = [
      errorFormat.errorKey === 'errors' ? String(response.extensions['code']) : response.code,
    ];
    // The headers of a response that could not be sent do not apply to the error.
    for (const name of ['ETag', 'Last-Modified', 'Content-Encoding']) res.removeHeader(name);
    res.set({ 'Cache-Control': 'no-store', ...response.headers });
    if (errorFormat.errorKey === 'errors') {
      const { text: message, extensions } = response;
      sendBody(
        res,
        response.status,
        JSON.stringify({ errors: [{ message, extensions }] }),
        graphqlTypeFor(req),
      );
    } else if ([accepts(req).types()].flat().includes('application/problem+json')) {
      const body = JSON.stringify(problem(response, errorFormat));
      sendBody(res, response.status, body, PROBLEM_TYPE);
    } else {
      sendBody(res, response.status, JSON.stringify(restError(response, errorFormat)));
    }
  };
}

/**
 * Returns the error of a REST endpoint: status, code, headers, and body as JSON and per RFC 9457.
 */
export function errorExample(error: DomainError | HttpError, errorFormat: ErrorFormat) {
  const response =
    error instanceof HttpError
      ? httpErrorResponse(error, errorFormat)
      : domainErrorResponse(error, errorFormat);
  const { status, code, headers } = response;
  return {
    status,
    code,
    headers,
    json: restError(response, errorFormat),
    problem: problem(response, errorFormat),
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

/** Returns an internal error for clients, with only its id in the log. */
export function maskedError(requestId: string): {
  message: string;
  extensions: Record<string, unknown>;
} {
  return { message: 'Internal server error', extensions: { code: INTERNAL, requestId } };
}

function errorResponseOf(
  { locals }: Response,
  error: unknown,
  errorFormat: ErrorFormat,
  log: () => Logger,
): ErrorResponse {
  const visible = visibleError(error);
  if (visible instanceof HttpError) return httpErrorResponse(visible, errorFormat);
  if (visible) {
    if (visible.code === 'TIMEOUT') log().warn({ event: 'request.timeout' }, 'Request timed out');
    else if (visible.code === 'UNAVAILABLE' && visible !== error && !locals.signal.aborted)
      logUnavailable(log(), error);
    return domainErrorResponse(visible, errorFormat);
  }
  log().error({ err: error }, 'Request failed');
  const { message, extensions } = maskedError(locals.requestId);
  return {
    status: 500,
    code: INTERNAL,
    text: message,
    key: errorFormat.errorKey,
    headers: {},
    oauth: 'server_error',
    extensions,
  };
}

function httpErrorResponse(
  { status, message, headers }: HttpError,
  { errorKey }: ErrorFormat,
): ErrorResponse {
  const code = codeOf(status);
  return {
    status,
    code,
    text: message,
    key: errorKey,
    headers,
    oauth: INVALID_REQUEST,
    extensions: { code },
  };
}

function domainErrorResponse(error: DomainError, { errorKey }: ErrorFormat): ErrorResponse {
  const { code, message, fields, retryAfter } = error;
  const { status, challenge, sessionRouter, aboutCaller, oauth = INVALID_REQUEST } = ERRORS[code];
  const headers = {
    ...(challenge && { 'WWW-Authenticate': challenge }),
    ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
  };
  // Fields are always listed under `detail`, the format of the original services.
  const response: ErrorResponse = {
    status,
    code,
    text: message,
    key: aboutCaller ? 'detail' : errorKey,
    headers,
    oauth: fields.some(({ field, type }) => field === 'grant_type' && type === 'value_error')
      ? 'unsupported_grant_type'
      : oauth,
    extensions: graphqlExtensions(error),
  };
  if (code === 'BAD_USER_INPUT') return { ...response, key: 'detail', fields };
  return errorKey === 'data' && sessionRouter
    ? { ...response, ...sessionRouter, headers: {} }
    : response;
}

function restError(response: ErrorResponse, errorFormat: ErrorFormat) {
  const { key, text, fields } = response;
  return {
    [key]: fields ? fields.map((field) => validationEntry(field, errorFormat)) : text,
    ...oauthError(response, errorFormat),
  };
}

function validationEntry({ field, type, message, part }: FieldError, { inputPart }: ErrorFormat) {
  return {
    type,
    loc: [
      part ?? inputPart,
      ...(field === ''
        ? []
        : field.split('.').map((name) => (/^\d+$/.test(name) ? Number(name) : name))),
    ],
    msg: message,
  };
}

// RFC 6749, 5.2, allows neither quotation marks nor backslashes in a description.
function oauthError({ oauth, text }: ErrorResponse, { isOauth = false }: ErrorFormat) {
  return isOauth ? { error: oauth, error_description: text.replace(/[^ !#-[\]-~]/g, "'") } : {};
}

// RFC 9457.
function problem(response: ErrorResponse, errorFormat: ErrorFormat) {
  const { status, code, text, fields } = response;
  return {
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    detail: text,
    code,
    ...(fields && { errors: fields.map(({ field, type, message }) => ({ field, type, message })) }),
    ...oauthError(response, errorFormat),
  };
}

function codeOf(status: number): string {
  return (STATUS_CODES[status] ?? 'ERROR').toUpperCase().replace(/\W+/g, '_');
}
