const LEFT_ODD = [
  '0001101',
  '0011001',
  '0010011',
  '0111101',
  '0100011',
  '0110001',
  '0101111',
  '0111011',
  '0110111',
  '0001011',
];
const PARITIES = [
  'OOOOOO',
  'OOEOEE',
  'OOEEOE',
  'OOEEEO',
  'OEOOEE',
  'OEEOOE',
  'OEEEOO',
  'OEOEOE',
  'OEOEEO',
  'OEEOEO',
];
const GUARD = '101';
const CENTRE = '01010';

/**
 * The check digit, which completes the sum of the first twelve digits, every second one times three,
 * to a multiple of ten.
 */
export function checkDigit(twelve: string): string {
  const sum = Array.from(twelve).reduce(
    (total, digit, index) => total + Number(digit) * (index % 2 === 1 ? 3 : 1),
    0,
  );
  return String((10 - (sum % 10)) % 10);
}

/** The 95 modules of a barcode, 1 for a bar. The first digit selects the parity of the next six. */
export function modulesOf(barcode: string): string {
  const [first = 0, ...digits] = Array.from(barcode, Number);
  const parity = PARITIES[first] ?? '';
  const left = digits
    .slice(0, 6)
    .map((digit, index) => (parity[index] === 'E' ? reversed(right(digit)) : odd(digit)));
  return [GUARD, ...left, CENTRE, ...digits.slice(6).map(right), GUARD].join('');
}

function odd(digit: number): string {
  return LEFT_ODD[digit] ?? '';
}

function right(digit: number): string {
  return odd(digit).replace(/[01]/g, (module) => (module === '0' ? '1' : '0'));
}

function reversed(modules: string): string {
  return Array.from(modules).toReversed().join('');
}
