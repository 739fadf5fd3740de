import { STATUS_CODES, type IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Logger } from 'pino';
import { DomainError, type FieldError, type RequestPart } from '../core/errors.ts';
import { ERRORS, graphqlExtensions } from './error-map.ts';
import type { Exchange } from './exchange.ts';
import { HttpError, visibleError } from './http-error.ts';
import { logUnavailable } from './log-unavailable.ts';

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';
const INVALID_REQUEST = 'invalid_request';
const INTERNAL = 'INTERNAL_SERVER_ERROR';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
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

/** Sends a JSON response. */
export function sendJson(
  exchange: Exchange,
  status: number,
  body: unknown,
  type: string = JSON_TYPE,
): void {
  exchange.send(status, JSON.stringify(body), type);
}

/**
 * Sends an error (docs/rest.md): a visible error as it is, an internal error as 500 with only an id
 * that is in the log. Destroys the connection instead if the head of the response has been sent.
 */
export function sendError(
  exchange: Exchange,
  error: unknown,
  parent: Logger,
  errorFormat: ErrorFormat,
): void {
  const { req, res, requestId } = exchange;
  const log = parent.child({ requestId, endpoint: errorFormat.endpoint });
  if (res.headersSent) {
    if (exchange.isCancelled) return;
    log.error({ err: error }, 'Response interrupted');
    exchange.abort();
    return;
  }
  const response = errorResponseOf(exchange, error, errorFormat, log);
  exchange.record.errors = [
    errorFormat.errorKey === 'errors' ? String(response.extensions['code']) : response.code,
  ];
  exchange.set({ 'Cache-Control': 'no-store', ...response.headers });
  if (errorFormat.errorKey === 'errors') {
    sendJson(
      exchange,
      response.status,
      { errors: [{ message: response.text, extensions: response.extensions }] },
      graphqlTypeFor(req),
    );
  } else if ([accepts(req).types()].flat().includes('application/problem+json')) {
    sendJson(exchange, response.status, problem(response, errorFormat), PROBLEM_TYPE);
  } else {
    sendJson(exchange, response.status, restError(response, errorFormat));
  }
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

/** Returns an internal error for clients, with only its id in the log. */
export function maskedError(requestId: string): {
  message: string;
  extensions: Record<string, unknown>;
} {
  return { message: 'Internal server error', extensions: { code: INTERNAL, requestId } };
}

function errorResponseOf(
  exchange: Exchange,
  error: unknown,
  errorFormat: ErrorFormat,
  log: Logger,
): ErrorResponse {
  const visible = visibleError(error);
  if (visible instanceof HttpError) return httpErrorResponse(visible, errorFormat);
  if (visible) {
    if (visible !== error && !exchange.isCancelled) logUnavailable(log, error);
    return domainErrorResponse(visible, errorFormat);
  }
  log.error({ err: error }, 'Request failed');
  const { message, extensions } = maskedError(exchange.requestId);
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
