import { expect, test } from '../support/jest.ts';
import fc from 'fast-check';
import { checkDigit } from '../../src/features/products/check-digit.ts';
import { BarcodeLines } from '../../src/features/products/files/seen-barcodes.ts';

test('a recorded barcode returns its first line, among any others', () => {
  const lists = fc.array(
    fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 999_999_999_999 })),
    { maxLength: 500 },
  );
  fc.assert(
    fc.property(lists, (numbers) => {
      const seen = new BarcodeLines();
      const first = new Map<string, number>();
      for (const [index, number] of numbers.entries()) {
        const barcode = barcodeOf(number);
        expect(seen.add(barcode, index + 1)).toBe(first.get(barcode));
        if (!first.has(barcode)) first.set(barcode, index + 1);
      }
    }),
  );
});

test.each([
  ['in sequence', 1],
  ['a power of two apart', 2 ** 21],
])('two hundred thousand barcodes %s are all found', (_how, step) => {
  const seen = new BarcodeLines();
  const barcodes = Array.from({ length: 200_000 }, (_, index) => barcodeOf(index * step));
  expect(barcodes.filter((barcode, index) => seen.add(barcode, index + 1) !== undefined)).toEqual(
    [],
  );
  expect(barcodes.every((barcode, index) => seen.add(barcode, 1) === index + 1)).toBe(true);
});

function barcodeOf(number: number): string {
  const digits = String(number).padStart(12, '0');
  return digits + checkDigit(digits);
}
