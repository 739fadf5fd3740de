/** Prefixes that GS1 does not assign, or not to products (GS1 General Specifications, 1.4). */
const RESTRICTED: readonly (readonly [first: string, last: string, use: string])[] = [
  ['0000000', '0000000', 'use within a company'],
  ['020', '029', 'use within a region, such as goods sold by weight'],
  ['040', '049', 'use within a company'],
  ['050', '059', 'coupons'],
  ['200', '299', 'use within a region, such as goods sold by weight'],
  ['980', '980', 'refund receipts'],
  ['981', '984', 'coupons'],
  ['990', '999', 'coupons'],
];

/** Returns why a valid barcode may identify something else elsewhere; null if it does not. */
export function restrictedPrefixOf(barcode: string): string | null {
  for (const [first, last, use] of RESTRICTED) {
    const prefix = barcode.slice(0, first.length);
    if (prefix >= first && prefix <= last)
      return `GS1 reserves prefix ${prefix} for ${use}; elsewhere this barcode may identify something else.`;
  }
  return null;
}
