import { randomInt } from 'node:crypto';

/** Whether the text is an EAN-13 barcode: thirteen digits, the last of them the check digit. */
export function isEan13(text: unknown): boolean {
  return typeof text === 'string' && /^\d{13}$/.test(text) && text.endsWith(checkDigit(text));
}

/** A barcode of the GS1 range for internal use, so that it is not the barcode of a real article. */
export function newBarcode(): string {
  const digits = `29${String(randomInt(10 ** 10)).padStart(10, '0')}`;
  return digits + checkDigit(digits);
}

/** The barcode with a wrong check digit. */
export function withWrongCheckDigit(barcode: string): string {
  return barcode.slice(0, 12) + ((Number(barcode.slice(12)) + 1) % 10);
}

function checkDigit(digits: string): string {
  const sum = Array.from(digits.slice(0, 12)).reduce(
    (total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 1 : 3),
    0,
  );
  return String((10 - (sum % 10)) % 10);
}
