import { GraphQLError, GraphQLScalarType, Kind, type ValueNode } from 'graphql';
import { z } from 'zod';

/** The source text of a literal that stands for one value; undefined for lists, objects, variables and the rest. */
export function literalText(node: ValueNode, ...kinds: Kind[]): string | undefined {
  return kinds.includes(node.kind) && 'value' in node ? String(node.value) : undefined;
}

const instant = z.iso.datetime({ offset: true });

/** An instant as RFC 3339 text: given out in UTC, taken with any offset. */
export const DateTimeScalar = new GraphQLScalarType<Date, string>({
  name: 'DateTime',
  description: 'An instant as RFC 3339 text, given out in UTC, such as `2026-11-21T08:30:00.000Z`.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: (value) => {
    if (value instanceof Date) return value.toISOString();
    throw new TypeError('DateTime holds no instant');
  },
  parseValue: readInstant,
  parseLiteral: (node) => readInstant(literalText(node, Kind.STRING)),
});

// PostgreSQL knows no year 0.
function readInstant(input: unknown): Date {
  const { success, data } = instant.safeParse(input);
  if (!success || data.startsWith('0000'))
    throw new GraphQLError('A DateTime is RFC 3339 text with an offset, such as 2026-11-21T08:30:00Z');
  return new Date(data);
}
