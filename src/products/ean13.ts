import { z } from 'zod';
import { refuse } from '../kit/validation.ts';

/** A barcode: thirteen ASCII digits, the last of which checks the others (GS1 General Specifications, 7.9). */
export const ean13 = z.string().superRefine((text, ctx) => {
  if (!/^[0-9]{13}$/.test(text)) {
    refuse(ctx, 'ean13_digits', 'A barcode is thirteen digits (EAN-13)');
  } else if (text[12] !== checkDigit(text)) {
    refuse(ctx, 'ean13_check_digit', `The check digit does not hold; the last digit would be ${checkDigit(text)}`);
  }
});

/** The digit that has to follow the first twelve: their sum, every second one taken three times, is filled up to a multiple of ten. */
export function checkDigit(digits: string): string {
  const sum = Array.from(digits.slice(0, 12)).reduce((total, digit, index) => total + Number(digit) * (index % 2 ? 3 : 1), 0);
  return String((10 - (sum % 10)) % 10);
}
