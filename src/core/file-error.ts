/** Returns the system error code, such as `ENOENT`. Rethrows errors without a code. */
export function fileErrorCode(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string')
    return error.code;
  throw error;
}
