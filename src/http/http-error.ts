import { DomainError } from '../core/errors.ts';

/** A refusal of HTTP's own kind, before the domain is asked. */
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

// What the parsers of bodies and paths report by status; their own texts may hold a piece of the input.
const TEXTS = {
  400: 'The request cannot be read',
  408: 'The request took too long',
  413: 'The request is too large',
  415: 'This content type, charset or encoding is not supported',
} as const;

// States of the database, and errors of the way to it, that pass: PostgreSQL's appendix A, and Node's.
const PASSING = /^(08...|53...|57P0.|57014|40001|40P01|ECONNREFUSED|ECONNRESET|ENOENT|EPIPE|ETIMEDOUT)$/;
const PASSING_TEXT =
  /^(timeout exceeded when trying to connect|Connection terminated|Client has encountered a connection error|database ".*" is not currently accepting connections)/;

/** The error as one that the caller may see, or undefined where it is a fault of ours. */
export function visibleError(error: unknown): DomainError | HttpError | undefined {
  if (error instanceof DomainError || error instanceof HttpError) return error;
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'AbortError') return tooLate();
  if (isPassing(error)) return unavailable();
  const status = 'status' in error ? error.status : undefined;
  return isUsual(status) ? usualError(status) : undefined;
}

/** The refusal of a request that HTTP's own rules leave no room for, in the words for its status. */
export function usualError(status: keyof typeof TEXTS): HttpError {
  return new HttpError(status, TEXTS[status]);
}

/** The refusal of a request that was given up because it took too long. */
export function tooLate(): DomainError {
  return new DomainError('TIMEOUT', 'The service took too long to answer', [], 1);
}

/** The refusal of what cannot be done just now, and may be in a second. */
export function unavailable(): DomainError {
  return new DomainError('UNAVAILABLE', 'The service is not available at the moment', [], 1);
}

function isUsual(status: unknown): status is keyof typeof TEXTS {
  return typeof status === 'number' && status in TEXTS;
}

function isPassing(error: Error): boolean {
  return ('code' in error && typeof error.code === 'string' && PASSING.test(error.code)) || PASSING_TEXT.test(error.message);
}
