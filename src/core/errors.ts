/** Error codes of the domain: a closed set, which http/error-map.ts maps to each API's errors. */
export type ErrorCode =
  | 'BAD_USER_INPUT'
  | 'CURSOR_EXPIRED'
  | 'CONFLICT'
  | 'CREDENTIALS_REQUIRED'
  | 'DOCUMENT_NOT_TRUSTED'
  | 'SLOW_CONSUMER'
  | 'FORBIDDEN'
  | 'INACTIVE_LOGIN'
  | 'INACTIVE_USER'
  | 'INVALID_CREDENTIALS'
  | 'INVALID_SESSION_KEY'
  | 'INVALID_TOKEN'
  | 'NOT_AUTHENTICATED'
  | 'NOT_FOUND'
  | 'PERSISTED_QUERY_NOT_FOUND'
  | 'QUERY_TOO_COMPLEX'
  | 'RATE_LIMITED'
  | 'TIMEOUT'
  | 'UNAVAILABLE';

/** An error in one field of the input. */
export interface FieldError {
  /** Path to the field, joined by dots; empty for the whole input. */
  field: string;
  /** Machine-readable type, such as `missing` or `string_too_long`. */
  type: string;
  message: string;
  /** Part of the request that contains the field, if known. */
  part?: RequestPart;
}

export type RequestPart = 'path' | 'query' | 'header' | 'body';

/** An error that the caller may see: the only error whose message leaves the process. */
export class DomainError extends Error {
  override readonly name = 'DomainError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly fields: readonly FieldError[] = [],
    /** Seconds after which the client may retry. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

/** Returns the BAD_USER_INPUT error for one field of the input. */
export function badInput(field: string, message: string, type = 'value_error'): DomainError {
  return new DomainError('BAD_USER_INPUT', `${field}: ${message}`, [{ field, type, message }]);
}
