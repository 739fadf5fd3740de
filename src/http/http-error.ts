import { STATUS_CODES } from 'node:http';
import { DomainError } from '../core/errors.ts';

/** An error of the HTTP layer. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly fields: DomainError['fields'] = [];
  readonly retryAfter?: number;

  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  /** The reason phrase as a code, such as METHOD_NOT_ALLOWED. */
  get code(): string {
    return (STATUS_CODES[this.status] ?? 'ERROR').toUpperCase().replace(/\W+/g, '_');
  }
}

// Messages of errors that the body and path parsers report by status. The parsers' own messages may
// contain input.
const MESSAGES: Readonly<Record<number, string>> = {
  400: 'The request cannot be read',
  413: 'The request is too large',
  415: 'This content type, charset or encoding is not supported',
};

// Transient errors of the database and the connection: codes of PostgreSQL's appendix A and of
// Node. A standby rejects writes with 25006.
const TRANSIENT =
  /^(08...|25006|53...|57P0.|40001|40P01|EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTDOWN|EHOSTUNREACH|ENETDOWN|ENETUNREACH|ENOENT|ENOTFOUND|EPIPE|ETIMEDOUT)$/;
const STARTING = 'The service is starting, which takes a few seconds';
const UNAVAILABLE = 'The service is not available at the moment';
/** Message of the default reason of an AbortSignal. */
const ABORTED = 'This operation was aborted';
const TRANSIENT_MESSAGE =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|database ".*" is not currently accepting connections)/;

/** Returns the error that the caller may see, or undefined for an internal error. */
export function visibleError(error: unknown): DomainError | HttpError | undefined {
  if (error instanceof DomainError || error instanceof HttpError) return error;
  if (!(error instanceof Error)) return undefined;
  // PostgreSQL reports a statement at its time limit as cancelled (57014). The ORM's own errors keep
  // the message of the reason alone.
  const code = 'code' in error ? String(error.code) : '';
  if (error.name === 'AbortError' || error.message === ABORTED || code === '57014')
    return timeoutError();
  if (TRANSIENT.test(code) || TRANSIENT_MESSAGE.test(error.message)) return unavailableError();
  // Express reports a path that cannot be decoded, which is unknown.
  if (error instanceof URIError) return unknownPath();
  // Express also reports conditions that a file does not meet.
  const status = 'status' in error ? Number(error.status) : 0;
  return status >= 400 && status < 500 ? errorForStatus(status) : undefined;
}

/** Returns the standard error for this status. */
export function errorForStatus(status: number): HttpError {
  return new HttpError(status, MESSAGES[status] ?? STATUS_CODES[status] ?? '');
}

/** Returns the error of a request that was cancelled because it took too long. */
export function timeoutError(): DomainError {
  return new DomainError('TIMEOUT', 'The service took too long to respond', [], 1);
}

/** Returns the error for an unknown path. */
export function unknownPath(): DomainError {
  return new DomainError('NOT_FOUND', 'Not found');
}

/** Returns the error of a request that can be retried after a second. */
export function unavailableError(isStarting = false): DomainError {
  return new DomainError('UNAVAILABLE', isStarting ? STARTING : UNAVAILABLE, [], 1);
}
