import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  type SelectionNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { ONCE_PER_OPERATION } from '../api/once-per-operation.ts';
import { selectionsIn } from './selections.ts';

/**
 * Maximum number of validation errors; a further one says that validation stopped. For each error,
 * graphql-js may compare a name with every name of the schema.
 */
export const MAX_VALIDATION_ERRORS = 4;
/** Maximum number of errors in variables. A further one says that there are more. */
export const MAX_VARIABLE_ERRORS = 49;

/** Maximum length of an alias in characters. A list repeats it for each object. */
const MAX_ALIAS_LENGTH = 100;

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
  ];
}

/** Returns the error for a query that exceeds a limit. */
export function tooComplex(message: string): GraphQLError {
  return new GraphQLError(message, {
    originalError: new DomainError('QUERY_TOO_COMPLEX', message),
  });
}

// Rejects subscriptions whose field has a condition. Other rules then see an empty document, because
// one of the specification throws if a variable decides, and graphql-js if no field is left.
const noConditionsRule: ValidationRule = (context) => ({
  Document(document) {
    const conditional = document.definitions.filter(
      (definition) =>
        definition.kind === Kind.OPERATION_DEFINITION &&
        definition.operation === OperationTypeNode.SUBSCRIPTION &&
        [...selectionsIn(definition.selectionSet, (name) => context.getFragment(name))].some(
          isConditional,
        ),
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

function isConditional({ directives = [] }: SelectionNode): boolean {
  return directives.some(({ name: { value } }) => value === 'skip' || value === 'include');
}

const aliasLengthRule: ValidationRule = (context) => ({
  Field({ alias }) {
    if (alias && alias.value.length > MAX_ALIAS_LENGTH)
      context.reportError(
        tooComplex(`The query has an alias of more than ${MAX_ALIAS_LENGTH} characters`),
      );
  },
});

function directivesRule(limit: number): ValidationRule {
  return (context) => {
    let count = 0;
    return {
      Directive() {
        if (++count === limit + 1)
          context.reportError(tooComplex(`The query has more than ${limit} directives`));
      },
    };
  };
}

// Limits the number of root fields, fragments included, and of those allowed once per operation.
function rootFieldsRule(limit: number): ValidationRule {
  return (context) => ({
    OperationDefinition({ operation, selectionSet }) {
      const names = [...selectionsIn(selectionSet, (name) => context.getFragment(name))]
        .filter((part) => part.kind === Kind.FIELD)
        .map(({ name }) => name.value);
      if (names.length > limit)
        context.reportError(tooComplex(`The query has more than ${limit} root fields`));
      const known = context.getSchema().getRootType(operation)?.getFields() ?? {};
      // They are counted together, because each is a guess at a password.
      const limited = names.filter((name) => known[name]?.extensions[ONCE_PER_OPERATION] === true);
      if (limited.length > 1) {
        const fields = [...new Set(limited)].join(' or ');
        context.reportError(tooComplex(`An operation has ${fields} at most once`));
      }
    },
  });
}
