import { z } from 'zod';
import { refuse } from './validation.ts';

const CONTROL = /\p{Cc}/u;

/** Whether PostgreSQL can store the text as it is: no NUL, and no half of a surrogate pair. */
export function isStorable(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed();
}

/** How many code points a text has. */
export function lengthOf(text: string): number {
  return [...text].length;
}

/** Whether the text is longer than `max` bytes in UTF-8, where a unit of UTF-16 takes one to three bytes. */
export function isLonger(text: string, max: number): boolean {
  return text.length * 3 > max && (text.length > max || Buffer.byteLength(text) > max);
}

/** One line of text, trimmed: 1 to `max` code points, no control characters. */
export function lineOf(max: number): z.ZodType<string> {
  return z
    .string()
    .transform((text) => text.trim())
    .superRefine((text, ctx) => {
      if (!text.isWellFormed() || CONTROL.test(text)) refuse(ctx, 'string_control_characters', 'String should have no control characters');
      else checkLength(ctx, text, max);
    });
}

/** Running text as it was written, with line breaks and tabs: 1 to `max` code points. */
export function proseOf(max: number): z.ZodType<string> {
  return z.string().superRefine((text, ctx) => {
    if (!isStorable(text)) refuse(ctx, 'string_control_characters', 'String should have no NUL and be well-formed Unicode');
    else checkLength(ctx, text, max);
  });
}

function checkLength(ctx: z.core.$RefinementCtx, text: string, max: number): void {
  const length = lengthOf(text);
  if (length === 0) refuse(ctx, 'string_too_short', 'String should have at least 1 character');
  if (length > max) refuse(ctx, 'string_too_long', `String should have at most ${max} characters`);
}
