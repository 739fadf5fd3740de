import { ApolloServerErrorCode } from '@apollo/server/errors';
import { maxAliasesRule } from '@escape.tech/graphql-armor-max-aliases';
import { maxDepthRule } from '@escape.tech/graphql-armor-max-depth';
import {
  GraphQLError,
  Kind,
  OperationTypeNode,
  parse,
  specifiedRules,
  validate,
  visit,
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type SelectionNode,
  type SelectionSetNode,
  type ValidationContext,
  type ValidationRule,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { ONCE_PER_OPERATION } from '../api/once-per-operation.ts';
import type { Config } from '../core/config.ts';
import { tooComplex } from './errors.ts';

/** Maximum size of cached documents: the characters of their JSON and, twice, of their texts. */
const MAX_SIZE = 8_000_000;
/**
 * Maximum number of validation errors; a further one says that validation stopped. For each error,
 * graphql-js may compare a name with every name of the schema.
 */
const MAX_VALIDATION_ERRORS = 4;
/** Maximum length of an alias in characters. A list repeats it for each object. */
const MAX_ALIAS_LENGTH = 100;

const { GRAPHQL_PARSE_FAILED, GRAPHQL_VALIDATION_FAILED } = ApolloServerErrorCode;

/**
 * Parses and validates documents, and caches valid ones, bounded by their size. Apollo Server uses
 * it as its document store, and the subscription transports call `read`.
 */
export class Documents {
  /** Rules and limits, as options of Apollo Server. */
  readonly options;
  private readonly cache = new LRUCache<string, DocumentNode>({
    maxSize: MAX_SIZE,
    sizeCalculation: (document) =>
      JSON.stringify(document).length + 2 * (document.loc?.source.body.length ?? 0),
  });

  constructor(
    private readonly schema: GraphQLSchema,
    config: Config,
  ) {
    this.options = {
      // Any client could fill the memory.
      persistedQueries: false as const,
      parseOptions: { maxTokens: config.graphqlMaxTokens },
      validationRules: limitRules(config),
      validationOptions: { maxErrors: MAX_VALIDATION_ERRORS },
    };
  }

  async get(key: string): Promise<DocumentNode | undefined> {
    return this.cache.get(key);
  }

  async set(key: string, document: DocumentNode): Promise<void> {
    // Unused after validation, and much larger than the text: each comment is a token.
    const withoutTokens = { startToken: undefined, endToken: undefined };
    visit(document, { enter: ({ loc }) => void (loc && Object.assign(loc, withoutTokens)) });
    this.cache.set(key, document);
  }

  async delete(key: string): Promise<boolean> {
    return this.cache.delete(key);
  }

  /** Returns the parsed and validated document of this text, or its errors. */
  read(text: string): DocumentNode | readonly GraphQLError[] {
    const cached = this.cache.get(text);
    if (cached) return cached;
    const { schema, options } = this;
    let document: DocumentNode;
    try {
      document = parse(text, options.parseOptions);
    } catch (error) {
      return [withCode(error as GraphQLError, GRAPHQL_PARSE_FAILED)];
    }
    const rules = [...specifiedRules, ...options.validationRules];
    const errors = validate(schema, document, rules, options.validationOptions);
    if (errors.length > 0) return errors.map((error) => withCode(error, GRAPHQL_VALIDATION_FAILED));
    void this.set(text, document);
    return document;
  }
}

/** Adds the code to an error that has none. */
function withCode(error: GraphQLError, code: ApolloServerErrorCode): GraphQLError {
  error.extensions['code'] ??= code;
  return error;
}

/** Returns the fragments of a document by name. */
export function fragmentsOf({ definitions }: DocumentNode): Map<string, FragmentDefinitionNode> {
  return new Map(
    definitions
      .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
      .map((fragment) => [fragment.name.value, fragment]),
  );
}

/**
 * Yields the selections of an object, and those in its fragments, in order. As in execution
 * (GraphQL, 6.3.2), a fragment is entered once: not again if its name is in `visited`.
 */
export function* selectionsIn(
  { selections }: SelectionSetNode,
  fragmentOf: (name: string) => FragmentDefinitionNode | null | undefined,
  visited = new Set<string>(),
): Generator<SelectionNode, void> {
  for (const part of selections) {
    yield part;
    if (part.kind === Kind.INLINE_FRAGMENT)
      yield* selectionsIn(part.selectionSet, fragmentOf, visited);
    if (part.kind !== Kind.FRAGMENT_SPREAD || visited.has(part.name.value)) continue;
    visited.add(part.name.value);
    const fragment = fragmentOf(part.name.value);
    if (fragment) yield* selectionsIn(fragment.selectionSet, fragmentOf, visited);
  }
}

/** Returns a validation rule for each limit of a document. Their errors are QUERY_TOO_COMPLEX. */
function limitRules(config: Config): ValidationRule[] {
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
