import { GraphQLScalarType, Kind, valueFromASTUntyped, type GraphQLScalarTypeConfig, type ValueNode } from 'graphql';
import { z } from 'zod';
import { parseExact } from '../core/exact-json.ts';
import { refuse } from '../core/validation.ts';

/** Member of the extensions of scalars and input types: the rule that the services check their values by. */
export const RULE = 'rule';

/**
 * How a scalar with this rule reads input: as it is. The services check it, so that one refusal names every mistake in an input, with
 * its place, whether a scalar or another rule refuses it.
 */
export function checkedByServices(
  rule: z.ZodType,
): Pick<GraphQLScalarTypeConfig<unknown, unknown>, 'parseValue' | 'parseLiteral' | 'extensions'> {
  return { parseValue: (value) => value, parseLiteral: readLiteral, extensions: { [RULE]: rule } };
}

/** The value of a literal, as JSON would have it. A number that a double would change is an InexactNumber. */
export function readLiteral(node: ValueNode): unknown {
  return node.kind === Kind.INT || node.kind === Kind.FLOAT ? parseExact(node.value) : valueFromASTUntyped(node);
}

const rfc3339 = z.iso.datetime({ offset: true });

/** An instant as RFC 3339 text with any offset, or as a Date. */
export const instant = z.unknown().transform((input, ctx): Date => {
  if (input instanceof Date) return input;
  const { success, data } = rfc3339.safeParse(input);
  // PostgreSQL knows no year 0.
  if (success && !data.startsWith('0000')) return new Date(data);
  return refuse(ctx, 'datetime_parsing', 'A DateTime is RFC 3339 text with an offset, such as 2026-11-21T08:30:00Z');
});

/** An instant as RFC 3339 text: given out in UTC, taken with any offset. */
export const DateTimeScalar = new GraphQLScalarType<unknown, string>({
  name: 'DateTime',
  description: 'An instant as RFC 3339 text, given out in UTC, such as `2026-11-21T08:30:00.000Z`.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: (value) => {
    if (value instanceof Date) return value.toISOString();
    throw new TypeError('DateTime holds no instant');
  },
  ...checkedByServices(instant),
});
