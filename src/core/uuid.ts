const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Whether the text is a UUID as PostgreSQL writes it: in lower case, with hyphens. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
