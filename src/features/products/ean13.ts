import { z } from 'zod';
import { reject } from '../../core/validation.ts';
import { checkDigit } from './check-digit.ts';

/** A barcode: 13 ASCII digits including the check digit (GS1 General Specifications, 7.9). */
export const ean13 = z.string().superRefine((text, ctx) => {
  if (!/^[0-9]{13}$/.test(text))
    reject(ctx, 'ean13_digits', 'A barcode must have 13 digits (EAN-13)');
  else if (text[12] !== checkDigit(text))
    reject(ctx, 'ean13_check_digit', `Invalid check digit; expected ${checkDigit(text)}`);
});
