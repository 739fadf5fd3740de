import { Field, InputType, registerEnumType } from 'type-graphql';
import { CheckedBy } from '../../api/checked-input.ts';
import { DateTimeScalar } from '../../api/scalars.ts';
import { newProduct, productFilter, productPatch } from './product.rules.ts';
import { DecimalScalar, EAN13Scalar, PriceScalar } from './product.scalars.ts';

export enum ProductOrderField {
  PK = 'PK',
  NAME = 'NAME',
  PRICE = 'PRICE',
  CREATED_AT = 'CREATED_AT',
  UPDATED_AT = 'UPDATED_AT',
}

export enum OrderDirection {
  ASC = 'ASC',
  DESC = 'DESC',
}

registerEnumType(ProductOrderField, {
  name: 'ProductOrderField',
  description: 'What products can be ordered by. Where it is the same for two, the pk decides.',
  valuesConfig: {
    PK: { description: 'The primary key: the order in which products were added.' },
    NAME: { description: 'The name, case and accents alike.' },
    PRICE: { description: 'The price.' },
    CREATED_AT: { description: 'When the product was added.' },
    UPDATED_AT: { description: 'When the product was last changed.' },
  },
});

registerEnumType(OrderDirection, {
  name: 'OrderDirection',
  description: 'Which way a list runs.',
  valuesConfig: { ASC: { description: 'From the least on.' }, DESC: { description: 'From the greatest on.' } },
});

@CheckedBy(productFilter, 'filter')
@InputType({ description: 'Which products to list: those that meet every condition given.' })
export class ProductFilter {
  @Field(() => String, {
    nullable: true,
    description:
      'Words, or their beginnings, that are all in the name, case and accents alike; or a barcode, or a pk. A word that the catalogue does not have is taken for one that differs by a letter. Without an order, the best come first.',
  })
  search?: string | null;

  @Field(() => String, { nullable: true, description: 'Text that is in the name as it stands here, case and accents alike.' })
  nameContains?: string | null;

  @Field(() => [EAN13Scalar], { nullable: true, description: 'One of these barcodes, at most 100.' })
  barcodeIn?: unknown[] | null;

  @Field(() => PriceScalar, { nullable: true, description: 'This price or more.' })
  priceMin?: unknown;

  @Field(() => PriceScalar, { nullable: true, description: 'This price or less.' })
  priceMax?: unknown;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Added then or later.' })
  createdSince?: unknown;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Changed then or later; what has never been changed, added.' })
  updatedSince?: unknown;
}

@InputType({ description: 'How to order products.' })
export class ProductOrder {
  @Field(() => ProductOrderField, { description: 'What to order by.' })
  field!: ProductOrderField;

  @Field(() => OrderDirection, { defaultValue: OrderDirection.ASC, description: 'Which way.' })
  direction!: OrderDirection;
}

@CheckedBy(newProduct)
@InputType({ description: 'A new product.' })
export class ProductInput {
  @Field(() => String, { description: 'The name: 1 to 255 characters once trimmed, no control characters.' })
  name!: string;

  @Field(() => EAN13Scalar, { description: 'The barcode. No other product may have it.' })
  barcode!: unknown;

  @Field(() => PriceScalar, { description: 'The price.' })
  price!: unknown;
}

@CheckedBy(newProduct)
@InputType({ description: 'A product of a batch that is to be added. As for `ProductInput`, but each is checked by itself.' })
export class ProductDraft {
  @Field(() => String, { description: 'The name: 1 to 255 characters once trimmed, no control characters.' })
  name!: string;

  @Field(() => String, { description: 'The barcode (EAN-13). No other product may have it.' })
  barcode!: string;

  @Field(() => DecimalScalar, { description: 'The price.' })
  price!: unknown;
}

@CheckedBy(productPatch)
@InputType({ description: 'What to change of a product; what is left out stays.' })
export class ProductPatch {
  @Field(() => String, { nullable: true, description: 'The new name.' })
  name?: string;

  @Field(() => EAN13Scalar, { nullable: true, description: 'The new barcode.' })
  barcode?: unknown;

  @Field(() => PriceScalar, { nullable: true, description: 'The new price.' })
  price?: unknown;
}
