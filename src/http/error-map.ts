import { DomainError, type ErrorCode } from '../core/errors.ts';
import type { HttpError } from './http-error.ts';

/** How each API reports an error. */
export interface ErrorMapping {
  status: number;
  /** The default is that of the error. */
  message?: string;
  headers?: Readonly<Record<string, string>>;
  /** `extensions.code` on GraphQL, if it is not the code of the error. */
  graphql?: string;
  /** What is different in the session router (interface, 4.2). There, it has no headers. */
  sessionRouter?: { status?: number; message?: string };
  /** The error is about credentials on the request: the session router also uses `detail`. */
  aboutCaller?: true;
  /** `error` of the token endpoints (RFC 6749, 5.2), if it is not invalid_request. */
  oauth?: 'invalid_grant';
}

/** RFC 6750, 3. */
const BEARER = { 'WWW-Authenticate': 'Bearer' };
/** RFC 7617, 2.1. */
const BASIC = { 'WWW-Authenticate': 'Basic realm="shopfront", charset="UTF-8"' };
const UNAUTHENTICATED = { status: 401, graphql: 'UNAUTHENTICATED' };
const ABOUT_TOKEN = { ...UNAUTHENTICATED, headers: BEARER, aboutCaller: true } as const;

/** Mapping of every error code for both APIs. The type requires an entry for each code. */
export const ERRORS: Record<ErrorCode, ErrorMapping> = {
  BAD_USER_INPUT: { status: 422 },
  CURSOR_EXPIRED: { status: 410 },
  CONFLICT: { status: 409 },
  CREDENTIALS_REQUIRED: { ...UNAUTHENTICATED, headers: BASIC },
  DOCUMENT_NOT_TRUSTED: { status: 400 },
  SLOW_CONSUMER: { status: 503 },
  FORBIDDEN: { status: 403 },
  INACTIVE_LOGIN: {
    status: 400,
    graphql: 'INACTIVE_USER',
    oauth: 'invalid_grant',
    sessionRouter: { status: 401 },
  },
  INACTIVE_USER: { status: 400, oauth: 'invalid_grant', aboutCaller: true },
  INVALID_CREDENTIALS: {
    status: 401,
    headers: BEARER,
    oauth: 'invalid_grant',
    sessionRouter: { message: 'Incorrect login and/or password' },
  },
  INVALID_SESSION_KEY: UNAUTHENTICATED,
  INVALID_TOKEN: { ...ABOUT_TOKEN, oauth: 'invalid_grant' },
  NOT_AUTHENTICATED: ABOUT_TOKEN,
  NOT_FOUND: { status: 404 },
  PERSISTED_QUERY_NOT_FOUND: { status: 400 },
  QUERY_TOO_COMPLEX: { status: 400 },
  RATE_LIMITED: { status: 429 },
  TIMEOUT: { status: 503 },
  UNAVAILABLE: { status: 503 },
};

/** Returns how an endpoint with this error key reports the error. */
export function mappingOf(error: DomainError | HttpError, errorKey?: string): ErrorMapping {
  const mapping: ErrorMapping = error instanceof DomainError ? ERRORS[error.code] : error;
  const { sessionRouter } = mapping;
  return errorKey === 'data' && sessionRouter
    ? { ...mapping, headers: {}, ...sessionRouter }
    : mapping;
}

/** Returns the error as GraphQL `extensions` (docs/graphql.md). */
export function graphqlExtensions(error: DomainError | HttpError): Record<string, unknown> {
  const { code, fields, retryAfter } = error;
  return {
    code: mappingOf(error).graphql ?? code,
    ...(retryAfter !== undefined && { retryAfter }),
    ...(fields.length > 0 && { fields: fields.map(({ field, message }) => ({ field, message })) }),
  };
}
