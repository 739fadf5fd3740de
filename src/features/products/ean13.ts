import { z } from 'zod';
import { refuse } from '../../core/validation.ts';

/** A barcode: thirteen ASCII digits, the last of which checks the others (GS1 General Specifications, 7.9). */
export const ean13 = z.string().superRefine((text, ctx) => {
  if (!/^[0-9]{13}$/.test(text)) {
    refuse(ctx, 'ean13_digits', `A barcode is thirteen digits (EAN-13)${adviceOn(text)}`);
  } else if (!holds(text)) {
    const message = `The check digit does not hold; the last digit would be ${checkDigit(text)}`;
    const [swap, ...others] = swapsIn(text);
    // Of one digit that is wrong nobody can tell the place; of two that are swapped one often can.
    const isLikely = swap !== undefined && others.length === 0;
    refuse(ctx, 'ean13_check_digit', isLikely ? `${message}, unless digits ${swap} and ${swap + 1} are swapped` : message);
  }
});

/** The digit that has to follow the first twelve: their sum, every second one taken three times, is filled up to a multiple of ten. */
export function checkDigit(digits: string): string {
  const sum = Array.from(digits.slice(0, 12)).reduce((total, digit, index) => total + Number(digit) * (index % 2 ? 3 : 1), 0);
  return String((10 - (sum % 10)) % 10);
}

// What would make a barcode of it. Said without the digits: refusals do not repeat what was sent.
function adviceOn(text: string): string {
  const digits = /^[0-9][0-9 -]*[0-9]$/.test(text) ? text.replace(/[ -]/g, '') : text;
  const isUpcA = /^[0-9]{12}$/.test(digits) && holds(`0${digits}`);
  const isGtin14 = /^0[0-9]{13}$/.test(digits) && holds(digits.slice(1));
  if (!isUpcA && !isGtin14 && !/^[0-9]{13}$/.test(digits)) return '';
  const advice = [
    ...(digits === text ? [] : ['leave out spaces and hyphens']),
    ...(isUpcA ? ['put a 0 in front of these twelve, which are a UPC-A'] : []),
    ...(isGtin14 ? ['leave out the 0 in front, which makes them a GTIN-14'] : []),
  ];
  return `: ${advice.join(', and ')}`;
}

/** The places, from 1, at which a swap with the next digit would make the check digit hold. */
function swapsIn(text: string): number[] {
  return Array.from({ length: 12 }, (_, at) => at).flatMap((at) => {
    const [one, other] = [text[at], text[at + 1]];
    return one !== other && holds(`${text.slice(0, at)}${other}${one}${text.slice(at + 2)}`) ? [at + 1] : [];
  });
}

// The last of thirteen digits is the one that has to follow the others.
function holds(digits: string): boolean {
  return digits[12] === checkDigit(digits);
}
