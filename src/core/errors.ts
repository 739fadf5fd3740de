/** Why the domain refuses: a closed set, which each door names in its own words (http/error-map.ts). */
export type ErrorCode =
  | 'BAD_USER_INPUT'
  | 'CHANGES_LOST'
  | 'CONFLICT'
  | 'CREDENTIALS_REQUIRED'
  | 'DOCUMENT_NOT_TRUSTED'
  | 'FELL_BEHIND'
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

/** One field of the input that was refused. */
export interface FieldError {
  /** Path to the field, its parts joined by dots; empty for the input as a whole. */
  field: string;
  /** Kind of mistake for programs, such as `missing` or `string_too_long`. */
  type: string;
  message: string;
  /** Which part of a request it stands in, where that is known. */
  part?: RequestPart;
}

export type RequestPart = 'path' | 'query' | 'header' | 'body';

/** A refusal that the caller may see: the only error whose text leaves the process. */
export class DomainError extends Error {
  override readonly name = 'DomainError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly fields: readonly FieldError[] = [],
    /** Seconds after which it is worth asking again. */
    readonly retryAfter?: number,
  ) {
    super(message);
  }
}

/** An error for one field of the input. */
export function badInput(field: string, message: string, type = 'value_error'): DomainError {
  return new DomainError('BAD_USER_INPUT', `${field}: ${message}`, [{ field, type, message }]);
}
