import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  parse,
  validate,
  type DocumentNode,
  type GraphQLSchema,
  type SelectionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';

/**
 * Returns an error for each subscription whose field has a condition. Runs before the rules of the
 * specification: one of them throws if a variable decides, and graphql-js if no field is left.
 */
export function validateWithoutConditions(
  schema: GraphQLSchema,
  document: DocumentNode,
): readonly GraphQLError[] {
  return validate(schema, document, [noConditionsRule]);
}

/** Parses the text and validates it as above. Returns no errors for a syntax error. */
export function validateTextWithoutConditions(
  schema: GraphQLSchema,
  text: unknown,
  maxTokens: number,
): readonly GraphQLError[] {
  if (typeof text !== 'string' || !text.includes('subscription')) return [];
  try {
    return validateWithoutConditions(schema, parse(text, { maxTokens }));
  } catch {
    return [];
  }
}

const noConditionsRule: ValidationRule = (context) => ({
  OperationDefinition(operation) {
    if (
      operation.operation !== OperationTypeNode.SUBSCRIPTION ||
      !hasCondition(context, operation.selectionSet, new Set())
    )
      return;
    context.reportError(
      new GraphQLError('The field of a subscription must not have @skip or @include', {
        nodes: operation,
      }),
    );
  },
});

function hasCondition(
  context: ValidationContext,
  { selections }: SelectionSetNode,
  visited: Set<string>,
): boolean {
  return selections.some(
    (part) =>
      isConditional(part) ||
      (part.kind !== Kind.FIELD && hasConditionBelow(context, part, visited)),
  );
}

function isConditional({ directives = [] }: SelectionNode): boolean {
  return directives.some(({ name: { value } }) => value === 'skip' || value === 'include');
}

// Visits each fragment once.
function hasConditionBelow(
  context: ValidationContext,
  part: Exclude<SelectionNode, { kind: Kind.FIELD }>,
  visited: Set<string>,
): boolean {
  if (part.kind === Kind.INLINE_FRAGMENT) return hasCondition(context, part.selectionSet, visited);
  const { value } = part.name;
  const fragment = visited.has(value) ? undefined : context.getFragment(value);
  visited.add(value);
  return fragment ? hasCondition(context, fragment.selectionSet, visited) : false;
}
