import { z } from 'zod';
import { reject } from '../../core/validation.ts';

/** A barcode: 13 ASCII digits including the check digit (GS1 General Specifications, 7.9). */
export const ean13 = z.string().superRefine((text, ctx) => {
  if (!/^[0-9]{13}$/.test(text))
    reject(ctx, 'ean13_digits', 'A barcode must have 13 digits (EAN-13)');
  else if (text[12] !== checkDigit(text))
    reject(ctx, 'ean13_check_digit', `Invalid check digit; expected ${checkDigit(text)}`);
});

/**
 * Returns the digit that fills the sum of the first 12, weighted 1 and 3, up to a multiple of 10.
 */
export function checkDigit(digits: string): string {
  const sum = Array.from(digits.slice(0, 12)).reduce(
    (total, digit, index) => total + Number(digit) * (index % 2 ? 3 : 1),
    0,
  );
  return String((10 - (sum % 10)) % 10);
}
