/** Maximum primary key: columns have 64 bits, and JSON and JavaScript integers up to 2^53 - 1. */
export const MAX_PK = Number.MAX_SAFE_INTEGER;

/** Parses a primary key: an integer from 1 to MAX_PK. Returns undefined for any other text. */
export function readPk(text: string): number | undefined {
  if (!/^[1-9]\d{0,15}$/.test(text)) return undefined;
  const pk = Number(text);
  return pk <= MAX_PK ? pk : undefined;
}
