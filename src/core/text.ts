import { z } from 'zod';
import { reject } from './validation.ts';

const CONTROL_CHARACTER = /\p{Cc}/u;
/** A character that is displayed by itself: none of Unicode's blanks, formats and marks. */
const VISIBLE_CHARACTER = /[^\p{Z}\p{Cc}\p{Cf}\p{M}\p{Default_Ignorable_Code_Point}\u2800]/u;

/** Returns whether PostgreSQL can store the text: no NUL, no lone surrogates. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** Returns the number of code points. */
export function codePointLength(text: string): number {
  return [...text].length;
}

/**
 * Schema of a trimmed line of text: 1 to `max` code points, one of them visible, no control
 * characters.
 */
export function lineOf(max: number): z.ZodType<string, string> {
  return z
    .string()
    .transform((text) => text.trim())
    .superRefine((text, ctx) => {
      if (!text.isWellFormed() || CONTROL_CHARACTER.test(text))
        reject(ctx, 'string_control_characters', 'String should have no control characters');
      else if (text !== '' && !VISIBLE_CHARACTER.test(text))
        reject(ctx, 'string_too_short', 'String should have at least 1 visible character');
      else checkLength(ctx, text, max);
    });
}

/** Schema of untrimmed text with line breaks and tabs: 1 to `max` code points. */
export function proseOf(max: number): z.ZodType<string> {
  return z.string().superRefine((text, ctx) => {
    if (!isStorable(text))
      reject(
        ctx,
        'string_control_characters',
        'String should have no NUL and be well-formed Unicode',
      );
    else checkLength(ctx, text, max);
  });
}

function checkLength(ctx: z.core.$RefinementCtx, text: string, max: number): void {
  const length = codePointLength(text);
  if (length === 0) reject(ctx, 'string_too_short', 'String should have at least 1 character');
  if (length > max) reject(ctx, 'string_too_long', `String should have at most ${max} characters`);
}

/** Returns whether the text exceeds `max` bytes of UTF-8. A UTF-16 unit takes 1 to 3 bytes. */
export function exceedsBytes(text: string, max: number): boolean {
  return text.length * 3 > max && (text.length > max || Buffer.byteLength(text) > max);
}
