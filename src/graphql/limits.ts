import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  type FragmentDefinitionNode,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { ONCE } from '../api/once-per-operation.ts';

type Limits = Config['graphqlLimits'];

/** How often each root field of an operation is asked for. */
type RootFields = Map<string, number>;

/** Maximum number of errors that validation finds before it stops: each may be compared with every name of the schema. One says that it stopped. */
export const MAX_VALIDATION_ERRORS = 4;
/** Maximum number of errors in variables. One more says that there are others. */
export const MAX_VARIABLE_ERRORS = 49;

const NO_FIELDS: RootFields = new Map();

/** What a document may be at most, whatever its variables are: each limit a rule of validation, refused as QUERY_TOO_COMPLEX. */
export function limitRules({ depth, aliases, directives, rootFields }: Limits): ValidationRule[] {
  const named = (noun: string, limit: number) => ({
    n: limit,
    propagateOnRejection: false,
    onReject: [(context: ValidationContext | null) => context?.reportError(tooComplex(`The query has more than ${limit} ${noun}`))],
  });
  return [
    // A fragment is no level of its own, and introspection, where it is on, has a limit of graphql-js's own.
    maxDepthRule({ ...named('levels', depth), flattenFragments: true, ignoreIntrospection: true }),
    maxAliasesRule({ ...named('aliases', aliases), allowList: [] }),
    directivesRule(directives),
    rootFieldsRule(rootFields),
    knownOperationRule,
  ];
}

/** The refusal of a query that would cost more than is allowed. */
export function tooComplex(message: string): GraphQLError {
  return new GraphQLError(message, { originalError: new DomainError('QUERY_TOO_COMPLEX', message) });
}

// Wherever they stand, and as often as their fragment is spread. The rule of that name beside the two above leaves out those on
// further spreads of a fragment.
function directivesRule(limit: number): ValidationRule {
  return (context) => {
    const known = new Map<string, number>();
    return {
      OperationDefinition({ directives = [], variableDefinitions = [], selectionSet }) {
        const ofVariables = variableDefinitions.reduce((sum, { directives: own = [] }) => sum + own.length, 0);
        const count = directives.length + ofVariables + directivesIn(context, selectionSet, known);
        if (count > limit) context.reportError(tooComplex(`The query has more than ${limit} directives`));
      },
    };
  };
}

function directivesIn(context: ValidationContext, { selections }: SelectionSetNode, known: Map<string, number>): number {
  let count = 0;
  for (const part of selections) {
    count += part.directives?.length ?? 0;
    if (part.kind === Kind.FRAGMENT_SPREAD) {
      count += ofFragment(
        context,
        part.name.value,
        known,
        0,
        ({ directives = [], selectionSet }) => directives.length + directivesIn(context, selectionSet, known),
      );
    } else if (part.selectionSet) count += directivesIn(context, part.selectionSet, known);
  }
  return count;
}

/** Returns the rules that documents meet beside those of the specification: the limits, and no introspection without the explorer. */
export function validationRules({ graphqlLimits, explorer }: Pick<Config, 'graphqlLimits' | 'explorer'>): ValidationRule[] {
  return [...limitRules(graphqlLimits), ...(explorer ? [] : [noIntrospectionRule])];
}

const noIntrospectionRule: ValidationRule = (context) => ({
  Field(node) {
    if (node.name.value !== '__schema' && node.name.value !== '__type') return;
    const message = 'Introspection is disabled on this server (GRAPHQL_EXPLORER)';
    context.reportError(new GraphQLError(message, { nodes: node, extensions: { validationErrorCode: 'INTROSPECTION_DISABLED' } }));
  },
});

// graphql-js finds out only when it executes that there are no operations of this kind.
const knownOperationRule: ValidationRule = (context) => ({
  OperationDefinition({ operation }) {
    if (!context.getSchema().getRootType(operation)) context.reportError(new GraphQLError(`There is no ${operation} here`));
  },
});

// How many fields stand at the root, fragments included, and those that may stand there once.
function rootFieldsRule(limit: number): ValidationRule {
  return (context) => {
    const known = new Map<string, RootFields>();
    return {
      OperationDefinition(operation) {
        const found = rootFieldsOf(context, operation.selectionSet, known);
        const count = [...found.values()].reduce((sum, times) => sum + times, 0);
        if (count > limit) context.reportError(tooComplex(`The query has more than ${limit} root fields`));
        const once = [...found].filter(([name]) => isOnce(context, operation, name));
        // Together: each is a guess at a password.
        if (once.reduce((sum, [, times]) => sum + times, 0) > 1) {
          context.reportError(tooComplex(`An operation has ${once.map(([name]) => name).join(' or ')} once at most`));
        }
      },
    };
  };
}

function rootFieldsOf(context: ValidationContext, { selections }: SelectionSetNode, known: Map<string, RootFields>): RootFields {
  const found: RootFields = new Map();
  const add = (name: string, times: number) => found.set(name, (found.get(name) ?? 0) + times);
  for (const part of selections) {
    if (part.kind === Kind.FIELD) {
      add(part.name.value, 1);
      continue;
    }
    const own =
      part.kind === Kind.INLINE_FRAGMENT
        ? rootFieldsOf(context, part.selectionSet, known)
        : ofFragment(context, part.name.value, known, NO_FIELDS, ({ selectionSet }) => rootFieldsOf(context, selectionSet, known));
    for (const [name, times] of own) add(name, times);
  }
  return found;
}

// Each fragment is gone through once: a few that spread each other twice would otherwise be endless work. One that leads back to
// itself, which a rule of the specification refuses, has nothing the second time.
function ofFragment<T>(
  context: ValidationContext,
  name: string,
  known: Map<string, T>,
  nothing: T,
  find: (fragment: FragmentDefinitionNode) => T,
): T {
  const before = known.get(name);
  if (before !== undefined) return before;
  const fragment = context.getFragment(name);
  if (!fragment) return nothing;
  known.set(name, nothing);
  const found = find(fragment);
  known.set(name, found);
  return found;
}

function isOnce(context: ValidationContext, { operation }: OperationDefinitionNode, name: string): boolean {
  const schema = context.getSchema();
  const root = operation === OperationTypeNode.MUTATION ? schema.getMutationType() : schema.getQueryType();
  return root?.getFields()[name]?.extensions[ONCE] === true;
}
