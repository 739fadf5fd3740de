/** Prefixes whose numbers GS1 gives to nobody, or not to products (GS1 General Specifications, 1.4). */
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

/** Why a barcode that holds may stand for something else elsewhere; null where it stands for one product in the whole world. */
export function restrictionOf(barcode: string): string | null {
  for (const [first, last, use] of RESTRICTED) {
    const prefix = barcode.slice(0, first.length);
    if (prefix >= first && prefix <= last)
      return `Barcodes that begin with ${prefix} are for ${use}: elsewhere it may stand for something else.`;
  }
  return null;
}
