import { randomInt } from 'node:crypto';

/** Whether the text is a barcode in EAN-13 format: thirteen digits of which the last is the check digit of the others. */
export function isEan13(text: unknown): boolean {
  return typeof text === 'string' && /^\d{13}$/.test(text) && text.endsWith(checkDigit(text));
}

/** A barcode of the range that GS1 leaves to each shop for its own use, so that it is nobody's article. */
export function newBarcode(): string {
  const digits = `29${String(randomInt(10 ** 10)).padStart(10, '0')}`;
  return digits + checkDigit(digits);
}

/** The barcode with another last digit, which cannot be right. */
export function misread(barcode: string): string {
  return barcode.slice(0, 12) + ((Number(barcode.slice(12)) + 1) % 10);
}

function checkDigit(digits: string): string {
  const sum = Array.from(digits.slice(0, 12)).reduce((total, digit, index) => total + Number(digit) * (index % 2 === 0 ? 1 : 3), 0);
  return String((10 - (sum % 10)) % 10);
}
