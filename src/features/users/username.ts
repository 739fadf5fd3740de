import { z } from 'zod';
import { lineOf } from '../../core/text.ts';
import { reject } from '../../core/validation.ts';

// Usernames are those of RFC 8265 (UsernameCaseMapped), in one of the scripts that UAX 31 recommends
// (table 5; UTS 39, 5.1), so that nobody gets a name that looks like another user's.

/** Maximum length of a username, in characters. */
export const MAX_USERNAME = 150;

/** Scripts that appear together, and all others that UAX 31 recommends (table 5). */
const SCRIPTS = [
  'Han Hiragana Katakana',
  'Han Bopomofo',
  'Han Hangul',
  ...'Latin Greek Cyrillic Armenian Georgian Hebrew Arabic Thaana Ethiopic Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Khmer'.split(
    ' ',
  ),
].map((scripts) => {
  const allowed = ['Common', 'Inherited', ...scripts.split(' ')];
  return new RegExp(
    `^[${allowed.map((script) => `\\p{Script_Extensions=${script}}`).join('')}]*$`,
    'u',
  );
});
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Thaana}]/u;

/** Fullwidth and halfwidth characters (RFC 8264, 5.2.1). */
const OTHER_WIDTH = /[\u3000\uff01-\uffee]/g;
/** Characters of the IdentifierClass (RFC 8264, 4.2), and spaces. */
const IDENTIFIER = /^[ -~\p{Ll}\p{Lu}\p{Lo}\p{Lm}\p{Nd}\p{Mn}\p{Mc}]*$/u;
/** Characters that are not displayed, and conjoining jamo (RFC 8264, 9.9 and 9.13). */
const DISALLOWED = /[\p{Default_Ignorable_Code_Point}\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb]/u;
/** Two sets of Arabic digits (RFC 5892, appendices A.8 and A.9). */
const MIXED_DIGITS = /[\u0660-\u0669].*[\u06f0-\u06f9]|[\u06f0-\u06f9].*[\u0660-\u0669]/u;

/** New username: 1 to 150 letters, digits and ASCII characters of one script, in normal form. */
export const newUsername = z
  .string()
  .transform((text) =>
    text.replace(OTHER_WIDTH, (character) => character.normalize('NFKC')).normalize('NFC'),
  )
  .pipe(lineOf(MAX_USERNAME))
  .superRefine((name, ctx) => {
    if (ctx.issues.length > 0) return;
    const isIdentifier =
      IDENTIFIER.test(name) && name.normalize('NFKC') === name && !DISALLOWED.test(name);
    if (!isIdentifier || name.includes('  ') || /^[\p{M}]/u.test(name))
      reject(
        ctx,
        'value_error',
        'A username must have letters, digits, ASCII signs and single spaces only',
      );
    else if (!SCRIPTS.some((script) => script.test(name)) || MIXED_DIGITS.test(name))
      reject(ctx, 'value_error', 'A username must have letters and digits of one script only');
    // RFC 5893, 2.
    else if (RIGHT_TO_LEFT.test(name) && !/^\p{L}(.*[\p{L}\p{Nd}\p{M}])?$/u.test(name))
      reject(
        ctx,
        'value_error',
        'A username written from right to left must begin with a letter and end with one or a digit',
      );
  });

/** Small Greek and Cyrillic letters, and the Latin ones that they or their capitals look like. */
const LOOKALIKES = new Map(
  [
    ['αβεζηικμνορτυχς', 'abezhikmnoptyxσ'],
    ['авеѕіјкмнорстухһԁӏԛԝ', 'abesijkmhopctyxhdlqw'],
  ].flatMap(([from = '', to = '']) =>
    [...from].map((letter, index) => [letter, to[index] ?? ''] as const),
  ),
);

/** Returns the form in which usernames are compared: without case, width and invisible characters. */
export function usernameForm(name: string): string {
  return name
    .replace(/\p{Default_Ignorable_Code_Point}/gu, '')
    .normalize('NFKC')
    .toLowerCase()
    .trim();
}

/** Returns what names that look alike share, as `username_key` of the database. */
export function usernameKey(name: string): string {
  return Array.from(usernameForm(name), (letter) => LOOKALIKES.get(letter) ?? letter).join('');
}
