import { Field, InputType, registerEnumType } from 'type-graphql';
import { DateTimeScalar } from '../../api/scalars.ts';
import type { CheckedFilter, ProductField } from './product.rules.ts';
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
  description: 'Fields to order products by. Products with equal values are ordered by pk.',
  valuesConfig: {
    PK: { description: 'The primary key: the order in which products were added.' },
    NAME: { description: 'The name, ignoring case and accents.' },
    PRICE: { description: 'The price.' },
    CREATED_AT: { description: 'When the product was added.' },
    UPDATED_AT: { description: 'When the product was last changed.' },
  },
});

registerEnumType(OrderDirection, {
  name: 'OrderDirection',
  description: 'Direction of an order.',
  valuesConfig: {
    ASC: { description: 'Ascending.' },
    DESC: { description: 'Descending.' },
  },
});

@InputType({ description: 'Which products to list: those that meet all given conditions.' })
export class ProductFilter implements Record<keyof CheckedFilter, unknown> {
  @Field(() => String, {
    nullable: true,
    description:
      'Words or word prefixes that the name contains, ignoring case, accents and punctuation; or a barcode or pk. A word that is not in the catalogue also matches words one edit away. Without an order, the best matches come first.',
  })
  search!: string | null | undefined;

  @Field(() => String, {
    nullable: true,
    description: 'Text that the name contains, ignoring case, accents and apostrophes.',
  })
  nameContains!: string | null | undefined;

  @Field(() => [EAN13Scalar], {
    nullable: true,
    description: 'Any of these barcodes, at most 100.',
  })
  barcodeIn!: unknown[] | null | undefined;

  @Field(() => PriceScalar, { nullable: true, description: 'Minimum price.' })
  priceMin: unknown;

  @Field(() => PriceScalar, { nullable: true, description: 'Maximum price.' })
  priceMax: unknown;

  @Field(() => DateTimeScalar, { nullable: true, description: 'Added at this time or later.' })
  createdSince: unknown;

  @Field(() => DateTimeScalar, {
    nullable: true,
    description: 'Added or changed at this time or later.',
  })
  updatedSince: unknown;
}

@InputType({ description: 'Order of products.' })
export class ProductOrder {
  @Field(() => ProductOrderField, { description: 'Field to order by.' })
  field!: ProductOrderField;

  @Field(() => OrderDirection, {
    defaultValue: OrderDirection.ASC,
    description: 'Direction of the order.',
  })
  direction!: OrderDirection;
}

@InputType({ description: 'A new product.' })
export class ProductInput implements Record<ProductField, unknown> {
  @Field(() => String, {
    description:
      'The name: 1 to 255 characters after trimming, one of them visible, no control characters.',
  })
  name!: string;

  @Field(() => EAN13Scalar, { description: 'The barcode, unique in the catalogue.' })
  barcode!: unknown;

  @Field(() => PriceScalar, { description: 'The price.' })
  price!: unknown;
}

@InputType({
  description:
    'A product of a batch to add. As `ProductInput`, but validated separately from the rest of the batch.',
})
export class ProductDraft implements Record<ProductField, unknown> {
  @Field(() => String, {
    description:
      'The name: 1 to 255 characters after trimming, one of them visible, no control characters.',
  })
  name!: string;

  @Field(() => String, { description: 'The barcode (EAN-13), unique in the catalogue.' })
  barcode!: string;

  @Field(() => DecimalScalar, { description: 'The price.' })
  price!: unknown;
}

@InputType({ description: 'Changes to a product. Omitted fields keep their value.' })
export class ProductPatch implements Record<ProductField, unknown> {
  @Field(() => String, { nullable: true, description: 'The new name.' })
  name!: string | undefined;

  @Field(() => EAN13Scalar, { nullable: true, description: 'The new barcode.' })
  barcode: unknown;

  @Field(() => PriceScalar, { nullable: true, description: 'The new price.' })
  price: unknown;
}
