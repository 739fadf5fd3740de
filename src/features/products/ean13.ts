import { z } from 'zod';
import { reject } from '../../core/validation.ts';
import { checkDigit } from './check-digit.ts';

/** A barcode: 13 ASCII digits including the check digit (GS1 General Specifications, 7.9). */
export const ean13 = z.string().superRefine((text, ctx) => {
  if (!/^[0-9]{13}$/.test(text)) {
    reject(ctx, 'ean13_digits', `A barcode must have 13 digits (EAN-13)${hintFor(text)}`);
  } else if (!hasValidCheckDigit(text)) {
    const message = `Invalid check digit; expected ${checkDigit(text)}`;
    const [swap, ...otherSwaps] = possibleSwaps(text);
    // A single wrong digit cannot be located; two swapped digits often can.
    const isLikely = swap !== undefined && otherSwaps.length === 0;
    reject(
      ctx,
      'ean13_check_digit',
      isLikely ? `${message}, unless digits ${swap} and ${swap + 1} are swapped` : message,
    );
  }
});

/** Spaces, hyphens, and characters that are not displayed. */
const SEPARATORS = /[\p{Zs}\p{Dash}\p{Default_Ignorable_Code_Point}]/gu;

// Returns how to correct the text, or ''. Error messages never repeat the input, so no digits.
function hintFor(text: string): string {
  if (/^['’`]/.test(text)) return ': remove the apostrophe';
  if (/^\d+(?:[.,]\d+)?(?:e\+?\d+)?$/i.test(text) && /\D/.test(text))
    return ': a program turned it into a number; store barcodes as text';
  if (/^\d{1,11}$/.test(text)) return ': leading zeros may be lost; store barcodes as text';
  const digits = text.replace(SEPARATORS, '');
  const isUpcA = /^\d{12}$/.test(digits) && hasValidCheckDigit(`0${digits}`);
  const isGtin14 = /^0\d{13}$/.test(digits) && hasValidCheckDigit(digits.slice(1));
  if (!isUpcA && !isGtin14 && !/^\d{13}$/.test(digits)) return '';
  const hints = [
    ...(digits === text ? [] : ['remove spaces and hyphens']),
    ...(isUpcA ? ['prefix this UPC-A with 0'] : []),
    ...(isGtin14 ? ['remove the leading 0 of this GTIN-14'] : []),
  ];
  return `: ${hints.join(', and ')}`;
}

/** Returns the positions, from 1, where a swap with the next digit makes the check digit valid. */
function possibleSwaps(text: string): number[] {
  return Array.from({ length: 12 }, (_, index) => index).flatMap((index) => {
    const [left, right] = [text[index], text[index + 1]];
    return left !== right &&
      hasValidCheckDigit(`${text.slice(0, index)}${right}${left}${text.slice(index + 2)}`)
      ? [index + 1]
      : [];
  });
}

function hasValidCheckDigit(digits: string): boolean {
  return digits[12] === checkDigit(digits);
}
