import { sql, type Sql } from '../../../database/sql.ts';
import { FIELD_KINDS, type ProductField } from '../product.rules.ts';

// A spreadsheet evaluates a cell as a formula if it begins with a sign of any width (OWASP, "CSV
// Injection"), and some drop an apostrophe at the start. A name has no tabs or line breaks. In
// locales with decimal commas, semicolons separate cells: the quotation marks of the name then do
// not enclose a cell, and a semicolon in the name starts a new one.
const START = '(^|;[ "]*)';
const SPECIAL = `(['=+@\uff1d\uff0b\uff20\uff0d\ufe66\ufe62\ufe6b\ufe63-])`;
const PROTECTED = new RegExp(`${START}'${SPECIAL}`, 'g');
const APOSTROPHE = /^'/;

/**
 * Returns the header of a column for a spreadsheet. An apostrophe says that its cells may have one
 * more, so that an import removes it again.
 */
export function protectedHeader(column: string): string {
  return isField(column) && FIELD_KINDS[column] !== 'decimal' ? `'${column}` : column;
}

/** Returns a column as text that a spreadsheet neither evaluates nor turns into a number. */
export function protectedCell(field: ProductField, column: Sql): Sql {
  const kind = FIELD_KINDS[field];
  if (kind === 'code') return sql`'''' || ${column}`;
  return kind === 'line'
    ? sql`regexp_replace(${column}, ${START + SPECIAL}, ${String.raw`\1'\2`}, 'g')`
    : column;
}

/** Returns the value of a cell for a spreadsheet. */
export function unprotected(field: ProductField, cell: string): string {
  return FIELD_KINDS[field] === 'line' ? cell.replace(PROTECTED, '$1$2') : withoutProtection(cell);
}

/** Removes the apostrophe at the start. */
export function withoutProtection(text: string): string {
  return text.replace(APOSTROPHE, '');
}

function isField(column: string): column is ProductField {
  return Object.hasOwn(FIELD_KINDS, column);
}
