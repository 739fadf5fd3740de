import { DomainError } from './errors.ts';

/** Returns the system error code, such as `ENOENT`. Rethrows errors without a code. */
export function fileErrorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return error.code;
  throw error;
}

/** Returns BAD_USER_INPUT for a system error of a file. Rethrows errors without a code. */
export function unwritable(path: string, error: unknown): DomainError {
  return new DomainError('BAD_USER_INPUT', `${path} cannot be written (${fileErrorCode(error)})`);
}
