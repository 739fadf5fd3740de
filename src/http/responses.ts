import { STATUS_CODES, type IncomingMessage } from 'node:http';
import accepts from 'accepts';
import type { Logger } from 'pino';
import { DomainError, type FieldError, type RequestPart } from '../core/errors.ts';
import { ERRORS, graphqlExtensions } from './error-map.ts';
import type { Exchange } from './exchange.ts';
import { HttpError, visibleError } from './http-error.ts';
import { tellUnavailable } from './log-unavailable.ts';

/** The content type of JSON. */
export const JSON_TYPE = 'application/json; charset=utf-8';
const INVALID_REQUEST = 'invalid_request';
const INTERNAL = 'INTERNAL_SERVER_ERROR';
const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';
/** The media types of responses of the GraphQL API, the default first. */
const GRAPHQL_TYPES = [JSON_TYPE, 'application/graphql-response+json; charset=utf-8'];

/** How the row at hand words its errors. */
export interface Wording {
  /** The row's name in the log. */
  row?: string;
  /** The member that holds the error; `errors` in the shape of GraphQL. */
  errorKey: 'detail' | 'data' | 'errors';
  /** Where input comes from that the services, not the row's schemas, refuse. */
  inputPart: RequestPart;
  /** Whether errors also have `error` and `error_description` (RFC 6749, 5.2). */
  isOauth?: boolean;
}

interface Refusal {
  status: number;
  code: string;
  text: string;
  key: Wording['errorKey'];
  fields?: readonly FieldError[];
  headers: Readonly<Record<string, string>>;
  /** `error` for a client of OAuth 2.0. */
  oauth: string;
  /** The same for a client of GraphQL. */
  extensions: Record<string, unknown>;
}

/** Answers JSON. */
export function answerJson(exchange: Exchange, status: number, body: unknown, type: string = JSON_TYPE): void {
  exchange.send(status, JSON.stringify(body), type);
}

/**
 * Answers an error, in the words of docs/decisions.md ("Errors"): a refusal as it is, a fault of ours as 500 with an id that
 * is in the log and nothing else. Once the head of the answer is out, the connection breaks instead.
 */
export function answerError(exchange: Exchange, error: unknown, parent: Logger, wording: Wording): void {
  const { req, res, requestId } = exchange;
  const log = parent.child({ requestId, row: wording.row });
  if (res.headersSent) {
    if (exchange.isGivenUp) return;
    log.error({ err: error }, 'an answer was cut short');
    exchange.breakOff();
    return;
  }
  const refusal = refusalOf(exchange, error, wording, log);
  exchange.seen.errors = [wording.errorKey === 'errors' ? String(refusal.extensions['code']) : refusal.code];
  exchange.set({ 'Cache-Control': 'no-store', ...refusal.headers });
  if (wording.errorKey === 'errors') {
    answerJson(exchange, refusal.status, { errors: [{ message: refusal.text, extensions: refusal.extensions }] }, graphqlTypeFor(req));
  } else if ([accepts(req).types()].flat().includes('application/problem+json')) {
    answerJson(exchange, refusal.status, problem(refusal, wording), PROBLEM_TYPE);
  } else {
    answerJson(exchange, refusal.status, restError(refusal, wording));
  }
}

/** The error as an endpoint of REST returns it: its status, code and headers, and its body as JSON and as RFC 9457 has it. */
export function errorExample(error: DomainError | HttpError, wording: Wording) {
  const refusal = error instanceof HttpError ? refusalOfHttp(error, wording) : refusalOfDomain(error, wording);
  const { status, code, headers } = refusal;
  return { status, code, headers, json: restError(refusal, wording), problem: problem(refusal, wording) };
}

/**
 * Returns the media type of a response of the GraphQL API to this request, which is the one that Apollo Server chooses: what the
 * client prefers, and JSON for a client that accepts neither (GraphQL over HTTP, 6.1).
 */
export function graphqlTypeFor(req: Pick<IncomingMessage, 'headers'>): string {
  const [chosen] = [accepts(req as IncomingMessage).type(GRAPHQL_TYPES)].flat();
  return chosen || JSON_TYPE;
}

/** What is told of a fault of ours: its id in the log, and nothing else. */
export function maskedError(requestId: string): { message: string; extensions: Record<string, unknown> } {
  return { message: 'Internal server error', extensions: { code: INTERNAL, requestId } };
}

function refusalOf(exchange: Exchange, error: unknown, wording: Wording, log: Logger): Refusal {
  const seen = visibleError(error);
  if (seen instanceof HttpError) return refusalOfHttp(seen, wording);
  if (seen) {
    if (seen !== error && !exchange.isGivenUp) tellUnavailable(log, error);
    return refusalOfDomain(seen, wording);
  }
  log.error({ err: error }, 'a request failed');
  const { message, extensions } = maskedError(exchange.requestId);
  return { status: 500, code: INTERNAL, text: message, key: wording.errorKey, headers: {}, oauth: 'server_error', extensions };
}

function refusalOfHttp({ status, message, headers }: HttpError, { errorKey }: Wording): Refusal {
  const code = codeOf(status);
  return { status, code, text: message, key: errorKey, headers, oauth: INVALID_REQUEST, extensions: { code } };
}

function refusalOfDomain(error: DomainError, { errorKey }: Wording): Refusal {
  const { code, message, fields, retryAfter } = error;
  const { status, challenge, sessionRouter, aboutCaller, oauth = INVALID_REQUEST } = ERRORS[code];
  const headers = {
    ...(challenge && { 'WWW-Authenticate': challenge }),
    ...(retryAfter !== undefined && { 'Retry-After': String(retryAfter) }),
  };
  // Fields are listed under `detail` everywhere: that is the shape which clients of the original services know.
  const refusal: Refusal = {
    status,
    code,
    text: message,
    key: aboutCaller ? 'detail' : errorKey,
    headers,
    oauth: fields.some(({ field, type }) => field === 'grant_type' && type === 'value_error') ? 'unsupported_grant_type' : oauth,
    extensions: graphqlExtensions(error),
  };
  if (code === 'BAD_USER_INPUT') return { ...refusal, key: 'detail', fields };
  return errorKey === 'data' && sessionRouter ? { ...refusal, ...sessionRouter, headers: {} } : refusal;
}

function restError(refusal: Refusal, wording: Wording) {
  const { key, text, fields } = refusal;
  return { [key]: fields ? fields.map((field) => entry(field, wording)) : text, ...oauthError(refusal, wording) };
}

function entry({ field, type, message, part }: FieldError, { inputPart }: Wording) {
  return {
    type,
    loc: [part ?? inputPart, ...(field === '' ? [] : field.split('.').map((name) => (/^\d+$/.test(name) ? Number(name) : name)))],
    msg: message,
  };
}

// RFC 6749, 5.2, which allows neither quotation marks nor backslashes in a description.
function oauthError({ oauth, text }: Refusal, { isOauth = false }: Wording) {
  return isOauth ? { error: oauth, error_description: text.replace(/[^ !#-[\]-~]/g, "'") } : {};
}

// RFC 9457.
function problem(refusal: Refusal, wording: Wording) {
  const { status, code, text, fields } = refusal;
  return {
    type: 'about:blank',
    title: STATUS_CODES[status],
    status,
    detail: text,
    code,
    ...(fields && { errors: fields.map(({ field, type, message }) => ({ field, type, message })) }),
    ...oauthError(refusal, wording),
  };
}

function codeOf(status: number): string {
  return (STATUS_CODES[status] ?? 'ERROR').toUpperCase().replace(/\W+/g, '_');
}
