import {
  GraphQLScalarType,
  Kind,
  valueFromASTUntyped,
  type GraphQLScalarTypeConfig,
  type ValueNode,
} from 'graphql';
import { z } from 'zod';
import { parseExact } from '../core/exact-json.ts';
import { reject } from '../core/validation.ts';

/**
 * Scalar configuration that passes input through unchanged. The services validate it, so that one
 * error names every invalid field, whichever rule rejects it.
 */
export const checkedByServices: Pick<
  GraphQLScalarTypeConfig<unknown, unknown>,
  'parseValue' | 'parseLiteral'
> = { parseValue: (value) => value, parseLiteral: readLiteral };

// Returns a literal as a JSON value. Numbers that a double would change become InexactNumbers.
function readLiteral(node: ValueNode): unknown {
  return node.kind === Kind.INT || node.kind === Kind.FLOAT
    ? parseExact(node.value)
    : valueFromASTUntyped(node);
}

const rfc3339 = z.iso.datetime({ offset: true });

/** Schema of an instant: RFC 3339 text with any offset, or a Date. */
export const instant = z.unknown().transform((input, ctx): Date => {
  if (input instanceof Date) return input;
  const { success, data } = rfc3339.safeParse(input);
  // PostgreSQL has no year 0.
  if (success && !data.startsWith('0000')) return new Date(data);
  return reject(
    ctx,
    'datetime_parsing',
    'A DateTime is RFC 3339 text with an offset, such as 2026-11-21T08:30:00Z',
  );
});

/** An instant as RFC 3339 text: returned in UTC, accepted with any offset. */
export const DateTimeScalar = new GraphQLScalarType<unknown, string>({
  name: 'DateTime',
  description: 'An instant as RFC 3339 text, returned in UTC, such as `2026-11-21T08:30:00.000Z`.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: (value) => {
    if (value instanceof Date) return value.toISOString();
    throw new TypeError('DateTime value is not a Date');
  },
  ...checkedByServices,
});
