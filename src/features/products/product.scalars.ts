import { GraphQLScalarType } from 'graphql';
import { checkedByServices, readLiteral } from '../../api/scalars.ts';
import { ean13 } from './ean13.ts';
import { price, priceNumber } from './price.ts';

export const EAN13Scalar = new GraphQLScalarType<unknown, string>({
  name: 'EAN13',
  description: 'A barcode: thirteen digits, the last of which is a valid check digit (GS1). Text, so that leading zeros stay.',
  serialize: String,
  ...checkedByServices(ean13),
});

export const PriceScalar = new GraphQLScalarType<unknown, number>({
  name: 'Price',
  description: 'An exact decimal with at most 2 fraction digits, 0 to 9999999999.99: a JSON number; as input also text.',
  serialize: (value) => priceNumber(String(value)),
  ...checkedByServices(price),
});

/** A price of a batch: each product is refused by itself. */
export const DecimalScalar = new GraphQLScalarType<unknown>({
  name: 'Decimal',
  description:
    'An exact decimal as input: a JSON number, or text. One that does not do is refused by itself, and not with the whole request.',
  parseValue: (value) => value,
  parseLiteral: readLiteral,
});
