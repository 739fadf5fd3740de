import { z } from 'zod';
import { InexactNumber } from '../../core/inexact-number.ts';
import { refuse } from '../../core/validation.ts';

const MAX_WHOLE_DIGITS = 10;
/** Maximum price. */
export const MAX_PRICE = 9_999_999_999.99;

/**
 * A price: an exact decimal from 0 to 9,999,999,999.99 with at most two fraction digits, given as a number or as
 * decimal text, read as the text that PostgreSQL stores. Never rounded.
 */
export const price = z.unknown().transform((input, ctx): string => {
  if (input === undefined) return refuse(ctx, 'missing', 'Field required');
  if (input instanceof InexactNumber) return refuse(ctx, 'decimal_max_digits', 'A price has at most 12 digits, 2 of them decimal places');
  if (typeof input !== 'number' && typeof input !== 'string') return refuse(ctx, 'decimal_type', 'A price is a number or decimal text');
  const text = String(input);
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined) return refuse(ctx, 'decimal_parsing', 'A price is a number or decimal text');
  if (fraction.length > 2) return refuse(ctx, 'decimal_max_places', 'A price has at most 2 decimal places');
  if (sign === '-' && Number(text) !== 0) return refuse(ctx, 'greater_than_equal', 'A price is 0 or more');
  const digits = whole.replace(/^0+(?=\d)/, '');
  if (digits.length > MAX_WHOLE_DIGITS) return refuse(ctx, 'less_than_equal', 'A price is at most 9999999999.99');
  return `${digits}.${fraction.padEnd(2, '0')}`;
});

/** The price as a JSON number. It has twelve digits at most, so that a double prints the very same back. */
export function priceNumber(stored: string): number {
  return Number(stored);
}
