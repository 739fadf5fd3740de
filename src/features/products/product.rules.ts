import { z } from 'zod';
import { DomainError } from '../../core/errors.ts';
import { instant } from '../../api/scalars.ts';
import { isStorable, codePointLength, lineOf } from '../../core/text.ts';
import { reject } from '../../core/validation.ts';
import { ean13 } from './ean13.ts';
import { MAX_PRICE, price } from './price.ts';

/** Schema of a new product, for both APIs. */
export const newProduct = z.object({
  name: lineOf(255).meta({
    description: 'The name; surrounding spaces are removed.',
    minLength: 1,
    maxLength: 255,
    examples: ['Brass Kettle'],
  }),
  barcode: ean13.meta({
    description:
      'The barcode (EAN-13): 13 digits, the last of which is the check digit. Unique in the catalogue.',
    pattern: '^[0-9]{13}$',
    minLength: 13,
    maxLength: 13,
    examples: ['4006381333931'],
  }),
  price: price.meta({
    description:
      'The price, 0 to 9999999999.99 with at most two fraction digits, not counting trailing zeros, as a number or as decimal text.',
    type: ['number', 'string'],
    minimum: 0,
    maximum: MAX_PRICE,
    pattern: '^[0-9]{1,10}(\\.[0-9]{1,2}0*)?$',
    examples: [24.5],
  }),
});

/** Schema of a change to a product; omitted fields keep their value. */
export const productPatch = newProduct.partial();

export type NewProduct = z.output<typeof newProduct>;

/** A field that callers set. */
export type ProductField = keyof NewProduct;

/**
 * How a field is stored and written: a line of any text, text of digits and letters, or a number
 * with two decimal places.
 */
export type FieldKind = 'line' | 'code' | 'decimal';

/** The kind of each field (product.columns.ts). */
export const FIELD_KINDS: Readonly<Record<ProductField, FieldKind>> = {
  name: 'line',
  barcode: 'code',
  price: 'decimal',
};

const MAX_BARCODES = 100;
const MAX_SEARCH_CHARACTERS = 255;

const searchText = z.string().superRefine((text, ctx) => {
  if (codePointLength(text) > MAX_SEARCH_CHARACTERS)
    reject(ctx, 'string_too_long', `has more than ${MAX_SEARCH_CHARACTERS} characters`);
  else if (!isStorable(text))
    reject(ctx, 'string_control_characters', 'has a NUL or is not well-formed Unicode');
});
// Counts first, so that a list that is too long is not validated one by one.
const barcodes = z
  .array(z.unknown())
  .superRefine((list, ctx) => {
    if (list.length > MAX_BARCODES)
      reject(ctx, 'too_long', `must have at most ${MAX_BARCODES} barcodes`);
  })
  .pipe(z.array(ean13));

/** Schema of a product filter: products meet all given conditions. */
export const productFilter = z.object({
  search: searchText.nullish(),
  nameContains: searchText.nullish(),
  barcodeIn: barcodes.nullish(),
  priceMin: price.nullish(),
  priceMax: price.nullish(),
  createdSince: instant.nullish(),
  updatedSince: instant.nullish(),
});

export type CheckedFilter = z.output<typeof productFilter>;

/** Returns the error for an unknown primary key. */
export function unknownProduct(): DomainError {
  return new DomainError('NOT_FOUND', 'No such product');
}

/** Returns the error for a barcode that another product has. */
export function barcodeTaken(): DomainError {
  const message = 'A product with this barcode already exists';
  return new DomainError('CONFLICT', message, [{ field: 'barcode', type: 'unique', message }]);
}
