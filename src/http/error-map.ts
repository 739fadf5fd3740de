import type { DomainError, ErrorCode } from '../core/errors.ts';

/** How each API reports a domain error. */
interface ErrorMapping {
  /** HTTP status on REST, and on GraphQL if the error fails the whole request. */
  status: number;
  /** `extensions.code` on GraphQL. */
  graphql: string;
  /** Status and message of the session router, under `data` (interface, 4.2). */
  sessionRouter?: { status: number; text: string };
  /**
   * Whether the session router also uses `detail`, because the error is about credentials on the
   * request and not about a login.
   */
  aboutCaller?: true;
  /** `WWW-Authenticate` (RFC 6750, 3). */
  challenge?: string;
  /** `error` of the token endpoints (RFC 6749, 5.2), if it is not invalid_request. */
  oauth?: 'invalid_grant' | 'temporarily_unavailable';
}

const BEARER = 'Bearer';
/** RFC 7617, 2.1. */
const BASIC = 'Basic realm="shopfront", charset="UTF-8"';

/** Mapping of every error code for both APIs. The type requires an entry for each code. */
export const ERRORS: Record<ErrorCode, ErrorMapping> = {
  BAD_USER_INPUT: { status: 422, graphql: 'BAD_USER_INPUT' },
  CURSOR_EXPIRED: { status: 410, graphql: 'CURSOR_EXPIRED' },
  CONFLICT: { status: 409, graphql: 'CONFLICT' },
  CREDENTIALS_REQUIRED: { status: 401, graphql: 'UNAUTHENTICATED', challenge: BASIC },
  DOCUMENT_NOT_TRUSTED: { status: 400, graphql: 'DOCUMENT_NOT_TRUSTED' },
  SLOW_CONSUMER: { status: 503, graphql: 'SLOW_CONSUMER' },
  FORBIDDEN: { status: 403, graphql: 'FORBIDDEN' },
  INACTIVE_LOGIN: {
    status: 400,
    graphql: 'INACTIVE_USER',
    oauth: 'invalid_grant',
    sessionRouter: { status: 401, text: 'Inactive user' },
  },
  INACTIVE_USER: {
    status: 400,
    graphql: 'INACTIVE_USER',
    oauth: 'invalid_grant',
    aboutCaller: true,
  },
  INVALID_CREDENTIALS: {
    status: 401,
    graphql: 'INVALID_CREDENTIALS',
    challenge: BEARER,
    oauth: 'invalid_grant',
    sessionRouter: { status: 401, text: 'Incorrect login and/or password' },
  },
  INVALID_SESSION_KEY: {
    status: 401,
    graphql: 'UNAUTHENTICATED',
    sessionRouter: { status: 401, text: 'Invalid session key' },
  },
  INVALID_TOKEN: {
    status: 401,
    graphql: 'UNAUTHENTICATED',
    challenge: BEARER,
    oauth: 'invalid_grant',
    aboutCaller: true,
  },
  NOT_AUTHENTICATED: {
    status: 401,
    graphql: 'UNAUTHENTICATED',
    challenge: BEARER,
    aboutCaller: true,
  },
  NOT_FOUND: { status: 404, graphql: 'NOT_FOUND' },
  PERSISTED_QUERY_NOT_FOUND: { status: 400, graphql: 'PERSISTED_QUERY_NOT_FOUND' },
  QUERY_TOO_COMPLEX: { status: 400, graphql: 'QUERY_TOO_COMPLEX' },
  RATE_LIMITED: { status: 429, graphql: 'RATE_LIMITED', oauth: 'temporarily_unavailable' },
  TIMEOUT: { status: 503, graphql: 'TIMEOUT', oauth: 'temporarily_unavailable' },
  UNAVAILABLE: { status: 503, graphql: 'UNAVAILABLE', oauth: 'temporarily_unavailable' },
};

/** Returns the error as GraphQL `extensions` (docs/graphql.md). */
export function graphqlExtensions({
  code,
  fields,
  retryAfter,
}: DomainError): Record<string, unknown> {
  return {
    code: ERRORS[code].graphql,
    ...(retryAfter !== undefined && { retryAfter }),
    ...(fields.length > 0 && { fields: fields.map(({ field, message }) => ({ field, message })) }),
  };
}
