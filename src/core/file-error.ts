/** Why the system refuses a file, in its own word, such as `ENOENT`. Throws what is no refusal of the system. */
export function refusalOfFile(error: unknown): string {
  if (error instanceof Error && 'code' in error && typeof error.code === 'string') return error.code;
  throw error;
}
