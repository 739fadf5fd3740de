import { z } from 'zod';
import { InexactNumber } from '../../core/inexact-number.ts';
import { reject } from '../../core/validation.ts';

const MAX_WHOLE_DIGITS = 10;
/** Maximum price. */
export const MAX_PRICE = 9_999_999_999.99;

/**
 * Schema of a price: an exact decimal from 0 to 9,999,999,999.99 with at most two fraction digits,
 * as a number or decimal text. Returns the text that PostgreSQL stores. Never rounds.
 */
export const price = z.unknown().transform((input, ctx): string => {
  if (input === undefined) return reject(ctx, 'missing', 'Field required');
  if (input instanceof InexactNumber)
    return reject(
      ctx,
      'decimal_max_digits',
      'A price has at most 12 digits, 2 of them decimal places',
    );
  if (typeof input !== 'number' && typeof input !== 'string')
    return reject(ctx, 'decimal_type', 'A price is a number or decimal text');
  const text = String(input);
  const [, sign, whole, fraction = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === undefined)
    return reject(ctx, 'decimal_parsing', 'A price is a number or decimal text');
  if (fraction.length > 2)
    return reject(ctx, 'decimal_max_places', 'A price has at most 2 decimal places');
  if (sign === '-' && Number(text) !== 0)
    return reject(ctx, 'greater_than_equal', 'A price is 0 or more');
  const digits = whole.replace(/^0+(?=\d)/, '');
  if (digits.length > MAX_WHOLE_DIGITS)
    return reject(ctx, 'less_than_equal', 'A price is at most 9999999999.99');
  return `${digits}.${fraction.padEnd(2, '0')}`;
});

/**
 * Returns the price as a JSON number. It has at most 12 digits, so a double prints it unchanged.
 */
export function priceNumber(stored: string): number {
  return Number(stored);
}
