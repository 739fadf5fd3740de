import { GraphQLScalarType } from 'graphql';
import { checkedByServices } from '../../api/scalars.ts';

export const EAN13Scalar = new GraphQLScalarType<unknown, string>({
  name: 'EAN13',
  description:
    'A barcode (EAN-13): 13 digits including a valid check digit (GS1). Text, to preserve leading zeros.',
  serialize: String,
  ...checkedByServices,
});

export const PriceScalar = new GraphQLScalarType<unknown, number>({
  name: 'Price',
  description:
    'An exact decimal with at most 2 fraction digits, 0 to 9999999999.99. A JSON number; input may also be text.',
  serialize: Number,
  ...checkedByServices,
});

/** Price of a product in a batch, validated per product. */
export const DecimalScalar = new GraphQLScalarType<unknown>({
  name: 'Decimal',
  description:
    'An exact decimal as input: a JSON number or text. An invalid value rejects its product, not the whole request.',
  ...checkedByServices,
});
