/** Maximum primary key: the maximum of PostgreSQL's `integer`. */
export const MAX_PK = 2_147_483_647;

/** Parses a primary key: an integer from 1 to MAX_PK. Returns undefined for any other text. */
export function readPk(text: string): number | undefined {
  if (!/^[1-9]\d{0,9}$/.test(text)) return undefined;
  const pk = Number(text);
  return pk <= MAX_PK ? pk : undefined;
}
