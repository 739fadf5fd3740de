import { GraphQLError, GraphQLScalarType, Kind } from 'graphql';
import type { z } from 'zod';
import { literalText } from '../kit/scalars.ts';
import { DomainError } from '../kit/errors.ts';
import { check } from '../kit/validation.ts';
import { ean13 } from './ean13.ts';
import { price, priceNumber } from './price.ts';

export const EAN13Scalar = new GraphQLScalarType<string, string>({
  name: 'EAN13',
  description: 'A barcode: thirteen digits, the last of which is a valid check digit (GS1). Text, so that leading zeros stay.',
  serialize: String,
  parseValue: (value) => read(ean13, value),
  parseLiteral: (node) => read(ean13, literalText(node, Kind.STRING)),
});

export const PriceScalar = new GraphQLScalarType<string, number>({
  name: 'Price',
  description: 'An exact decimal with at most 2 fraction digits, 0 to 9999999999.99: a JSON number; as input also text.',
  serialize: (value) => priceNumber(String(value)),
  parseValue: (value) => read(price, value),
  // The source text of the literal, so that no digit is lost on the way through a double.
  parseLiteral: (node) => read(price, literalText(node, Kind.INT, Kind.FLOAT, Kind.STRING)),
});

/** A price that has not been looked at yet: what it has to be is said for each input of a batch by itself. */
export const DecimalScalar = new GraphQLScalarType<unknown>({
  name: 'Decimal',
  description:
    'An exact decimal as input: a JSON number, or text. One that does not do is refused by itself, and not with the whole request.',
  parseValue: (value) => value,
  parseLiteral: (node) => literalText(node, Kind.INT, Kind.FLOAT, Kind.STRING) ?? null,
});

function read(schema: z.ZodType<string>, input: unknown): string {
  try {
    return check(schema, input);
  } catch (error) {
    throw error instanceof DomainError ? new GraphQLError(error.message) : error;
  }
}
