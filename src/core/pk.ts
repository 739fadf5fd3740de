/** Maximum primary key: PostgreSQL's largest `integer`. */
export const MAX_PK = 2_147_483_647;

/** The primary key that the text writes, or undefined: a whole number from 1 to PostgreSQL's largest `integer`. */
export function readPk(text: string): number | undefined {
  if (!/^[1-9]\d{0,9}$/.test(text)) return undefined;
  const pk = Number(text);
  return pk <= MAX_PK ? pk : undefined;
}
