import {
  getNamedType,
  getNullableType,
  getVariableValues,
  GraphQLError,
  isCompositeType,
  isListType,
  type DocumentNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import {
  getComplexity,
  type ComplexityEstimator,
  type ComplexityEstimatorArgs,
} from 'graphql-query-complexity';
import { badInput, DomainError } from '../core/errors.ts';
import { DEFAULT_PAGE, MAX_PAGE } from '../pagination/keyset.ts';
import { WEIGHT } from '../api/weight.ts';
import { graphqlErrorOf, tooComplex } from './errors.ts';

// A unit pays for half a millisecond of PostgreSQL with a million products. A filter that many of
// them match, far from the start of the order, takes 150 ms, and counting them 350 ms.

/** Additional cost of a filter. */
const SEARCH_COST = 300;
/** Additional cost of the `totalCount` of a filter. */
const SEARCH_COUNT_COST = 450;
/** Additional cost of a `totalCount` without a filter, of some ten thousand users or blog entries. */
const COUNT_COST = 5;
/** Maximum number of cached results per operation, by the variables that affect its cost. */
const MAX_CACHED = 100;
/** Maximum number of selections that are counted, those of a fragment once for each spread. */
const MAX_SELECTIONS = 2_000;

type Variables = Readonly<Record<string, unknown>>;

/**
 * Cost of an operation, computed before it runs: 1 for each object that the response may contain,
 * and more for searches and long texts.
 */
export class Cost {
  /** Results within the limit, by the variables that affect the cost. */
  private readonly allowed = new Set<string>();
  private readonly names: readonly string[];

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly document: DocumentNode,
    private readonly operation: OperationDefinitionNode,
    /** GRAPHQL_MAX_COST. */
    private readonly limit: number,
  ) {
    this.names = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
  }

  /** Returns the error if the operation may not run with these variables. */
  errorFor(variables: Variables): GraphQLError | undefined {
    // Object.prototype has members that a variable may be named like.
    const own = (name: string) => (Object.hasOwn(variables, name) ? variables[name] : undefined);
    const key = this.names.map((name) => cacheKeyOf(own(name))).join();
    if (this.allowed.has(key)) return undefined;
    try {
      const cost = this.of(variables);
      // Of invalid variables, which the execution rejects: valid ones may have the same key.
      if (cost === undefined) return undefined;
      if (cost > this.limit)
        return tooComplex(`The query costs ${cost}, which is more than ${this.limit}`);
      if (this.allowed.size < MAX_CACHED) this.allowed.add(key);
      return undefined;
    } catch (error) {
      return graphqlErrorOf(error);
    }
  }

  /**
   * Returns the cost with these variables; undefined if they are invalid, which the execution
   * reports. Throws BAD_USER_INPUT for a page size above the maximum.
   */
  of(variables: Variables): number | undefined {
    const { schema, document: query, operation } = this;
    const definitions = operation.variableDefinitions ?? [];
    if (!getVariableValues(schema, definitions, variables, { maxErrors: 1 }).coerced)
      return undefined;
    try {
      return getComplexity({
        schema,
        query,
        variables: { ...variables },
        estimators: [countObjects],
        maxQueryNodes: MAX_SELECTIONS,
        ...(operation.name && { operationName: operation.name.value }),
      });
    } catch (error) {
      throw requestErrorOf(error);
    }
  }
}

// A page counts its nodes or edges as often as its size, a list by keys its items as often as keys.
const countObjects: ComplexityEstimator = ({
  field,
  args,
  childComplexity,
}: ComplexityEstimatorArgs) => {
  if (!isCompositeType(getNamedType(field.type))) return Number(field.extensions[WEIGHT] ?? 0);
  if (field.name === 'pageInfo') return 0;
  if (field.args.some(({ name }) => name === 'first')) {
    const objects = Math.trunc(childComplexity);
    const hasCount = objects < childComplexity;
    const [search, count] = searches(args['filter'])
      ? [SEARCH_COST, SEARCH_COUNT_COST]
      : [0, COUNT_COST];
    return 1 + search + (hasCount ? count : 0) + pageSize(args) * objects;
  }
  const keys = listLength(args);
  return (isListType(getNullableType(field.type)) ? (keys ?? 1) : 1) * (1 + childComplexity);
};

// Rows are looked up by a list of keys.
function searches(filter: unknown): boolean {
  return (
    typeof filter === 'object' &&
    filter !== null &&
    Object.values(filter).some((condition) => condition != null && !Array.isArray(condition))
  );
}

function pageSize({ first, last }: Record<string, unknown>): number {
  const [name, size] =
    typeof last === 'number'
      ? (['last', last] as const)
      : (['first', first ?? DEFAULT_PAGE] as const);
  return Math.max(0, checkSize(name, Number(size)));
}

function listLength(args: Record<string, unknown>): number | undefined {
  for (const [name, value] of Object.entries(args))
    if (Array.isArray(value)) return checkSize(name, value.length);
  return undefined;
}

function checkSize(name: string, size: number): number {
  if (size > MAX_PAGE) throw badInput(name, `must be at most ${MAX_PAGE}`);
  return size;
}

// The cost depends only on the sizes and switches (numbers, booleans, list lengths) among the
// variables, and on whether a filter searches.
function cacheKeyOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value === 'number' || typeof value === 'boolean' || value == null)
    return String(value);
  return searches(value) ? 'search' : '';
}

// The library limits the number of selections, so that nested fragments are bounded. Its other
// errors report invalid arguments.
function requestErrorOf(error: unknown): unknown {
  if (!(error instanceof GraphQLError)) return error;
  if (/maximum allowed number of nodes/.test(error.message))
    return tooComplex('The query has too many selections');
  return new DomainError('BAD_USER_INPUT', error.message);
}
