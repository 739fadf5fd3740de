import { z } from 'zod';
import { DomainError } from '../kit/errors.ts';
import { lineOf } from '../kit/text.ts';
import { ean13 } from './ean13.ts';
import { price } from './price.ts';

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
    examples: ['4006381333931'],
  }),
  price: price.meta({
    description: 'The price, 0 to 9999999999.99 with at most two fraction digits, as a number or as decimal text.',
    type: ['number', 'string'],
    examples: [24.5],
  }),
});

/** What may be changed of a product; what is absent stays. */
export const productPatch = newProduct.partial();

export type NewProduct = z.output<typeof newProduct>;

/** The refusal of a barcode that another product has. */
export function barcodeTaken(): DomainError {
  const message = 'Another product has this barcode';
  return new DomainError('CONFLICT', message, [{ field: 'barcode', type: 'unique', message }]);
}
