import { z } from 'zod';
import { lineOf } from '../kit/text.ts';
import { ean13 } from './ean13.ts';
import { price } from './price.ts';

/** What a new product is made of: the rule of both doors. */
export const newProduct = z.object({ name: lineOf(255), barcode: ean13, price });

/** What may be changed of a product; what is absent stays. */
export const productPatch = newProduct.partial();

export type NewProduct = z.output<typeof newProduct>;
