import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { ONCE_PER_OPERATION } from '../api/once-per-operation.ts';

/** Number of selections of each root field of an operation. */
type RootFields = Map<string, number>;

/**
 * Maximum number of validation errors; a further one says that validation stopped. For each error,
 * graphql-js may compare a name with every name of the schema.
 */
export const MAX_VALIDATION_ERRORS = 4;
/** Maximum number of errors in variables. A further one says that there are more. */
export const MAX_VARIABLE_ERRORS = 49;

/** Maximum length of an alias in characters. A list repeats it for each object. */
const MAX_ALIAS_LENGTH = 100;

const NO_FIELDS: RootFields = new Map();

/** Returns a validation rule for each limit of a document. Their errors are QUERY_TOO_COMPLEX. */
export function limitRules(config: Config): ValidationRule[] {
  const ruleOptions = (noun: string, limit: number) => ({
    n: limit,
    propagateOnRejection: false,
    onReject: [
      (context: ValidationContext | null) =>
        context?.reportError(tooComplex(`The query has more than ${limit} ${noun}`)),
    ],
  });
  return [
    noConditionsRule,
    // Fragments do not count as levels. graphql-js limits introspection itself.
    maxDepthRule({
      ...ruleOptions('levels', config.graphqlMaxDepth),
      flattenFragments: true,
      ignoreIntrospection: true,
    }),
    maxAliasesRule({ ...ruleOptions('aliases', config.graphqlMaxAliases), allowList: [] }),
    aliasLengthRule,
    directivesRule(config.graphqlMaxDirectives),
    rootFieldsRule(config.graphqlMaxRootFields),
    knownOperationRule,
  ];
}

/** Returns the error for a query that exceeds a limit. */
export function tooComplex(message: string): GraphQLError {
  return new GraphQLError(message, {
    originalError: new DomainError('QUERY_TOO_COMPLEX', message),
  });
}

const aliasLengthRule: ValidationRule = (context) => ({
  Field({ alias }) {
    if (alias && alias.value.length > MAX_ALIAS_LENGTH)
      context.reportError(
        tooComplex(`The query has an alias of more than ${MAX_ALIAS_LENGTH} characters`),
      );
  },
});

// Counts all directives, those of a fragment once for each spread. The directives rule of the
// library used above ignores those on further spreads of a fragment.
function directivesRule(limit: number): ValidationRule {
  return (context) => {
    const cache = new Map<string, number>();
    return {
      OperationDefinition({ directives = [], variableDefinitions = [], selectionSet }) {
        const ofVariables = variableDefinitions.reduce(
          (sum, { directives: ofVariable = [] }) => sum + ofVariable.length,
          0,
        );
        const count = directives.length + ofVariables + directivesIn(context, selectionSet, cache);
        if (count > limit)
          context.reportError(tooComplex(`The query has more than ${limit} directives`));
      },
    };
  };
}

function directivesIn(
  context: ValidationContext,
  { selections }: SelectionSetNode,
  cache: Map<string, number>,
): number {
  let count = 0;
  for (const part of selections) {
    count += part.directives?.length ?? 0;
    if (part.kind === Kind.FRAGMENT_SPREAD) {
      count += memoized(
        context,
        part.name.value,
        cache,
        0,
        ({ directives = [], selectionSet }) =>
          directives.length + directivesIn(context, selectionSet, cache),
      );
    } else if (part.selectionSet) count += directivesIn(context, part.selectionSet, cache);
  }
  return count;
}

/**
 * Returns the validation rules beyond the specification: the limits, and no introspection if the
 * explorer is off.
 */
export function validationRules(config: Config): ValidationRule[] {
  return [...limitRules(config), ...(config.graphqlExplorer ? [] : [noIntrospectionRule])];
}

const noIntrospectionRule: ValidationRule = (context) => ({
  Field(node) {
    if (node.name.value !== '__schema' && node.name.value !== '__type') return;
    const message = 'Introspection is disabled on this server (GRAPHQL_EXPLORER)';
    context.reportError(
      new GraphQLError(message, {
        nodes: node,
        extensions: { validationErrorCode: 'INTROSPECTION_DISABLED' },
      }),
    );
  },
});

// graphql-js checks only at execution whether the schema has this operation type.
const knownOperationRule: ValidationRule = (context) => ({
  OperationDefinition({ operation }) {
    if (!context.getSchema().getRootType(operation))
      context.reportError(new GraphQLError(`The schema has no ${operation} operations`));
  },
});

// Rejects subscriptions whose field has a condition. Other rules then see an empty document, because
// one of the specification throws if a variable decides, and graphql-js if no field is left.
const noConditionsRule: ValidationRule = (context) => ({
  Document(document) {
    const conditional = document.definitions.filter(
      (definition) =>
        definition.kind === Kind.OPERATION_DEFINITION &&
        definition.operation === OperationTypeNode.SUBSCRIPTION &&
        hasCondition(context, definition.selectionSet, new Set()),
    );
    if (conditional.length === 0) return undefined;
    context.reportError(
      new GraphQLError('The field of a subscription must not have @skip or @include', {
        nodes: conditional,
      }),
    );
    return { ...document, definitions: [] };
  },
});

// Limits the number of root fields, fragments included, and of those allowed once per operation.
function rootFieldsRule(limit: number): ValidationRule {
  return (context) => {
    const cache = new Map<string, RootFields>();
    return {
      OperationDefinition(operation) {
        const fields = rootFieldsOf(context, operation.selectionSet, cache);
        const count = [...fields.values()].reduce((sum, times) => sum + times, 0);
        if (count > limit)
          context.reportError(tooComplex(`The query has more than ${limit} root fields`));
        const limited = [...fields].filter(([name]) =>
          isOncePerOperation(context, operation, name),
        );
        // They are counted together, because each is a guess at a password.
        if (limited.reduce((sum, [, times]) => sum + times, 0) > 1) {
          context.reportError(
            tooComplex(
              `An operation has ${limited.map(([name]) => name).join(' or ')} at most once`,
            ),
          );
        }
      },
    };
  };
}

function rootFieldsOf(
  context: ValidationContext,
  { selections }: SelectionSetNode,
  cache: Map<string, RootFields>,
): RootFields {
  const fields: RootFields = new Map();
  const add = (name: string, times: number) => fields.set(name, (fields.get(name) ?? 0) + times);
  for (const part of selections) {
    if (part.kind === Kind.FIELD) {
      add(part.name.value, 1);
      continue;
    }
    const nested =
      part.kind === Kind.INLINE_FRAGMENT
        ? rootFieldsOf(context, part.selectionSet, cache)
        : memoized(context, part.name.value, cache, NO_FIELDS, ({ selectionSet }) =>
            rootFieldsOf(context, selectionSet, cache),
          );
    for (const [name, times] of nested) add(name, times);
  }
  return fields;
}

// Visits each fragment once: a few fragments that spread each other twice would otherwise take
// exponential time. A cycle, which a rule of the specification rejects, counts as empty.
function memoized<T>(
  context: ValidationContext,
  name: string,
  cache: Map<string, T>,
  empty: T,
  compute: (fragment: FragmentDefinitionNode) => T,
): T {
  const cached = cache.get(name);
  if (cached !== undefined) return cached;
  const fragment = context.getFragment(name);
  if (!fragment) return empty;
  cache.set(name, empty);
  const value = compute(fragment);
  cache.set(name, value);
  return value;
}

function isOncePerOperation(
  context: ValidationContext,
  { operation }: OperationDefinitionNode,
  name: string,
): boolean {
  const schema = context.getSchema();
  const root =
    operation === OperationTypeNode.MUTATION ? schema.getMutationType() : schema.getQueryType();
  return root?.getFields()[name]?.extensions[ONCE_PER_OPERATION] === true;
}

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
