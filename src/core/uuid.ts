const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Returns whether the text is a UUID in PostgreSQL's form: lower case, with hyphens. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
