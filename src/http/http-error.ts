import { DomainError } from '../core/errors.ts';

/** An error of the HTTP layer. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

// Messages of errors that the body and path parsers report by status. The parsers' own messages may
// contain input.
const MESSAGES = {
  400: 'The request cannot be read',
  408: 'The request took too long',
  413: 'The request is too large',
  415: 'This content type, charset or encoding is not supported',
} as const;

// Transient errors of the database and the connection: codes of PostgreSQL's appendix A and of
// Node. A standby rejects writes with 25006.
const TRANSIENT =
  /^(08...|25006|53...|57P0.|40001|40P01|EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTDOWN|EHOSTUNREACH|ENETDOWN|ENETUNREACH|ENOENT|ENOTFOUND|EPIPE|ETIMEDOUT)$/;
const TRANSIENT_MESSAGE =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|database ".*" is not currently accepting connections)/;

/** Returns the error that the caller may see, or undefined for an internal error. */
export function visibleError(error: unknown): DomainError | HttpError | undefined {
  if (error instanceof DomainError || error instanceof HttpError) return error;
  if (!(error instanceof Error)) return undefined;
  // PostgreSQL reports a statement at its time limit as cancelled (57014).
  if (error.name === 'AbortError' || codeOf(error) === '57014') return timeoutError();
  if (isTransient(error)) return unavailableError();
  // Express reports a path that cannot be decoded, which is unknown.
  if (error instanceof URIError) return unknownPath();
  const status = 'status' in error ? error.status : undefined;
  return hasMessage(status) ? errorForStatus(status) : undefined;
}

/** Returns the standard error for this status. Its response has these headers. */
export function errorForStatus(
  status: keyof typeof MESSAGES,
  headers?: Readonly<Record<string, string>>,
): HttpError {
  return new HttpError(status, MESSAGES[status], headers);
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
export function unavailableError(): DomainError {
  return new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 1);
}

function hasMessage(status: unknown): status is keyof typeof MESSAGES {
  return typeof status === 'number' && status in MESSAGES;
}

function isTransient(error: Error): boolean {
  return TRANSIENT.test(codeOf(error)) || TRANSIENT_MESSAGE.test(error.message);
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : '';
}
