import { z } from 'zod';
import { lineOf } from '../../core/text.ts';

/** Maximum length of a username, in characters. */
export const MAX_USERNAME = 150;

/** Characters that are not displayed. */
const IGNORABLE = /\p{Default_Ignorable_Code_Point}/gu;

/** New username: a line of 1 to 150 characters, stored without width and invisible characters. */
export const newUsername = z
  .string()
  .transform((text) => text.replace(IGNORABLE, '').normalize('NFKC'))
  .pipe(lineOf(MAX_USERNAME));

/**
 * Returns the form in which usernames are compared, as `username_key` of the database: without case,
 * width and invisible characters. A final sigma is a sigma.
 */
export function usernameForm(name: string): string {
  return name.replace(IGNORABLE, '').normalize('NFKC').toLowerCase().trim().replaceAll('ς', 'σ');
}
