import { isSafeNumber } from 'lossless-json';
import { InexactNumber } from './inexact-number.ts';

/** The value of a JSON text. A number that a double would change is an InexactNumber. Throws SyntaxError. */
export function parseExact(text: string): unknown {
  // Up to fifteen digits and without an exponent, a double holds every number as it is written.
  return /[\d.]{16}|\d[eE]/.test(text) ? JSON.parse(text, keepExact) : JSON.parse(text);
}

function keepExact(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  return isSafeNumber(context.source) ? value : new InexactNumber(context.source);
}
