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
 * What is wrong with a document because the field of a subscription hangs on a condition. It is looked at before the rules of the specification, for of these one fails where a
 * variable decides, and graphql-js where nothing is left.
 */
export function conditionalFaults(schema: GraphQLSchema, document: DocumentNode): readonly GraphQLError[] {
  return validate(schema, document, [unconditionalRule]);
}

/** As `conditionalFaults`, of a document's text. One that cannot be read has none: it is refused by who reads it. */
export function conditionalFaultsOf(schema: GraphQLSchema, text: unknown, maxTokens: number): readonly GraphQLError[] {
  if (typeof text !== 'string' || !text.includes('subscription')) return [];
  try {
    return conditionalFaults(schema, parse(text, { maxTokens }));
  } catch {
    return [];
  }
}

const unconditionalRule: ValidationRule = (context) => ({
  OperationDefinition(operation) {
    if (operation.operation !== OperationTypeNode.SUBSCRIPTION || !hasCondition(context, operation.selectionSet, new Set())) return;
    context.reportError(new GraphQLError('The field of a subscription cannot be skipped or included on a condition', { nodes: operation }));
  },
});

function hasCondition(context: ValidationContext, { selections }: SelectionSetNode, seen: Set<string>): boolean {
  return selections.some((part) => isConditional(part) || (part.kind !== Kind.FIELD && hasConditionBelow(context, part, seen)));
}

function isConditional({ directives = [] }: SelectionNode): boolean {
  return directives.some(({ name: { value } }) => value === 'skip' || value === 'include');
}

// Each fragment is gone through once.
function hasConditionBelow(context: ValidationContext, part: Exclude<SelectionNode, { kind: Kind.FIELD }>, seen: Set<string>): boolean {
  if (part.kind === Kind.INLINE_FRAGMENT) return hasCondition(context, part.selectionSet, seen);
  const { value } = part.name;
  const fragment = seen.has(value) ? undefined : context.getFragment(value);
  seen.add(value);
  return fragment ? hasCondition(context, fragment.selectionSet, seen) : false;
}
