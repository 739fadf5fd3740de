import { z } from 'zod';
import { InexactNumber } from '../../core/exact-json.ts';
import { reject } from '../../core/validation.ts';

const MAX_WHOLE_DIGITS = 10;
/** Maximum price. */
export const MAX_PRICE = 9_999_999_999.99;

const MAX_PLACES = 2;
const NUMBER = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i;

/**
 * Schema of a price: an exact decimal from 0 to 9,999,999,999.99 with at most two fraction digits,
 * trailing zeros aside, as a number or as decimal text, which has no exponent. Returns the text
 * that PostgreSQL stores. Never rounds.
 */
export const price = z.unknown().transform((input, ctx): string => {
  if (input === undefined) return reject(ctx, 'missing', 'Field required');
  const isText = typeof input === 'string';
  if (!isText && typeof input !== 'number' && !(input instanceof InexactNumber))
    return reject(ctx, 'decimal_type', 'A price is a number or decimal text');
  const text = input instanceof InexactNumber ? input.source : String(input);
  const [, sign, whole, fraction = '', exponent] = NUMBER.exec(text) ?? [];
  if (whole === undefined || (isText && exponent !== undefined))
    return reject(ctx, 'decimal_parsing', 'A price is a number or decimal text');
  const digits = `${whole}${fraction}`.replace(/^0+/, '');
  // The lookbehind avoids quadratic time.
  const significant = digits.replace(/(?<!0)0+$/, '');
  if (significant === '') return '0.00';
  // The value is `significant` times ten to this power.
  const power = Number(exponent ?? 0) - fraction.length + digits.length - significant.length;
  if (power < -MAX_PLACES)
    return reject(ctx, 'decimal_max_places', 'A price has at most 2 decimal places');
  if (sign === '-') return reject(ctx, 'greater_than_equal', 'A price is 0 or more');
  if (significant.length + power > MAX_WHOLE_DIGITS)
    return reject(ctx, 'less_than_equal', 'A price is at most 9999999999.99');
  const cents = `${significant}${'0'.repeat(power + MAX_PLACES)}`.padStart(MAX_PLACES + 1, '0');
  return `${cents.slice(0, -MAX_PLACES)}.${cents.slice(-MAX_PLACES)}`;
});
