import { z } from 'zod';
import { DomainError } from '../../core/errors.ts';
import { instant } from '../../api/scalars.ts';
import { isStorable, lengthOf, lineOf } from '../../core/text.ts';
import { refuse } from '../../core/validation.ts';
import { ean13 } from './ean13.ts';
import { MAX_PRICE, price } from './price.ts';

/** What a new product is made of: the rule of both doors. */
export const newProduct = z.object({
  name: lineOf(255).meta({
    description: 'The name; spaces around it do not count.',
    minLength: 1,
    maxLength: 255,
    examples: ['Brass Kettle'],
  }),
  barcode: ean13.meta({
    description: 'The barcode: thirteen digits, the last of which checks the others (EAN-13). No other product may have it.',
    pattern: '^[0-9]{13}$',
    minLength: 13,
    maxLength: 13,
    examples: ['4006381333931'],
  }),
  price: price.meta({
    description: 'The price, 0 to 9999999999.99 with at most two fraction digits, as a number or as decimal text.',
    type: ['number', 'string'],
    minimum: 0,
    maximum: MAX_PRICE,
    pattern: '^[0-9]{1,10}(\\.[0-9]{1,2})?$',
    examples: [24.5],
  }),
});

/** What may be changed of a product; what is absent stays. */
export const productPatch = newProduct.partial();

export type NewProduct = z.output<typeof newProduct>;

const MAX_BARCODES = 100;
const MAX_TEXT = 255;

const searched = z.string().superRefine((text, ctx) => {
  if (lengthOf(text) > MAX_TEXT) refuse(ctx, 'string_too_long', `has more than ${MAX_TEXT} characters`);
  else if (!isStorable(text)) refuse(ctx, 'string_control_characters', 'has a NUL or is not well-formed Unicode');
});
// Counted first: so many barcodes are not looked at one by one.
const barcodes = z
  .array(z.unknown())
  .superRefine((list, ctx) => {
    if (list.length > MAX_BARCODES) refuse(ctx, 'too_long', `names at most ${MAX_BARCODES} barcodes`);
  })
  .pipe(z.array(ean13));

/** Which products to list: those that meet every condition given. */
export const productFilter = z.object({
  search: searched.nullish(),
  nameContains: searched.nullish(),
  barcodeIn: barcodes.nullish(),
  priceMin: price.nullish(),
  priceMax: price.nullish(),
  createdSince: instant.nullish(),
  updatedSince: instant.nullish(),
});

export type CheckedFilter = z.output<typeof productFilter>;

/** The refusal of a primary key that no product has. */
export function unknownProduct(): DomainError {
  return new DomainError('NOT_FOUND', 'No such product');
}

/** The refusal of a barcode that another product has. */
export function barcodeTaken(): DomainError {
  const message = 'Another product has this barcode';
  return new DomainError('CONFLICT', message, [{ field: 'barcode', type: 'unique', message }]);
}
