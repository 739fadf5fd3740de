import { GraphQLScalarType, type Kind, type ValueNode } from 'graphql';

/** The source text of a literal that stands for one value; undefined for lists, objects, variables and the rest. */
export function literalText(node: ValueNode, ...kinds: Kind[]): string | undefined {
  return kinds.includes(node.kind) && 'value' in node ? String(node.value) : undefined;
}

/** An instant as RFC 3339 text in UTC. Only given out: no input of the schema takes one. */
export const DateTimeScalar = new GraphQLScalarType<Date, string>({
  name: 'DateTime',
  description: 'An instant as RFC 3339 text in UTC, such as `2026-11-21T08:30:00.000Z`.',
  specifiedByURL: 'https://www.rfc-editor.org/rfc/rfc3339',
  serialize: (value) => {
    if (value instanceof Date) return value.toISOString();
    throw new TypeError('DateTime holds no instant');
  },
});
