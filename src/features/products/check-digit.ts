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
