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
import { getComplexity, type ComplexityEstimator, type ComplexityEstimatorArgs } from 'graphql-query-complexity';
import { LRUCache } from 'lru-cache';
import { badInput, DomainError } from '../core/errors.ts';
import { DEFAULT_PAGE, MAX_PAGE } from '../pagination/keyset.ts';
import { WEIGHT } from '../api/weight.ts';
import { tooComplex } from './limits.ts';

/** What a filter costs besides: a word that may be mistyped is compared with thousands, a part of a name that is too short for an index with every name, and what meets it may have to be counted. */
const SEARCH = 50;
/** What is remembered of one operation, by the variables that decide its cost, at most so many. */
const MAX_KNOWN = 100;
/** How many selections are looked at, each as often as its fragment is spread. */
const MAX_SELECTIONS = 2_000;

/** What an operation costs: one for each object that its answer may hold, and more for a search and for long texts. Known before anything runs. */
export class Cost {
  /** Made with a plan's first request: what is asked once has no use for a memory. */
  private allowed: LRUCache<string, boolean> | undefined;
  private readonly names: readonly string[];

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly document: DocumentNode,
    private readonly operation: OperationDefinitionNode,
    /** GRAPHQL_MAX_COST. */
    readonly limit: number,
  ) {
    this.names = (operation.variableDefinitions ?? []).map(({ variable }) => variable.name.value);
  }

  /** Throws QUERY_TOO_COMPLEX where the cost with these variables is above the limit. */
  refuseDear(variables: Readonly<Record<string, unknown>>): void {
    const cost = this.of(variables);
    if (cost !== undefined && cost > this.limit) throw tooComplex(`The query costs ${cost}, which is more than ${this.limit}`);
  }

  /** Whether the cost with these variables is known to be within the limit. Remembers what it has found. */
  allows(variables: Readonly<Record<string, unknown>>): boolean {
    this.allowed ??= new LRUCache({ max: MAX_KNOWN });
    const key = this.names.map((name) => weightOf(variables[name])).join();
    const before = this.allowed.get(key);
    if (before !== undefined) return before;
    const found = this.isWithin(variables);
    if (found) this.allowed.set(key, found);
    return found;
  }

  private isWithin(variables: Readonly<Record<string, unknown>>): boolean {
    try {
      const cost = this.of(variables);
      return cost !== undefined && cost <= this.limit;
    } catch {
      return false;
    }
  }

  /** The cost with these variables, undefined where they are no values for it. Throws BAD_USER_INPUT for pages larger than there are. */
  of(variables: Readonly<Record<string, unknown>>): number | undefined {
    const { schema, document: query, operation } = this;
    const { coerced } = getVariableValues(schema, operation.variableDefinitions ?? [], variables, { maxErrors: 1 });
    // What is wrong with them is told by who executes.
    if (!coerced) return undefined;
    try {
      return getComplexity({
        schema,
        query,
        variables: { ...variables },
        estimators: [objects],
        maxQueryNodes: MAX_SELECTIONS,
        ...nameOf(operation),
      });
    } catch (error) {
      throw refusalOf(error);
    }
  }
}

// A page is as many objects as are asked for of what its edges or nodes hold; a list by keys, as many as there are keys.
const objects: ComplexityEstimator = ({ field, args, childComplexity }: ComplexityEstimatorArgs) => {
  if (!isCompositeType(getNamedType(field.type))) return Number(field.extensions[WEIGHT] ?? 0);
  if (field.name === 'pageInfo') return 0;
  if (field.args.some(({ name }) => name === 'first'))
    return 1 + (searches(args['filter']) ? SEARCH : 0) + pageSize(args) * childComplexity;
  const keys = listLength(args);
  return (isListType(getNullableType(field.type)) ? (keys ?? 1) : 1) * (1 + childComplexity);
};

function searches(filter: unknown): boolean {
  if (typeof filter !== 'object' || filter === null) return false;
  const { search, nameContains, priceMin, priceMax, createdSince, updatedSince } = filter as Record<string, unknown>;
  return [search, nameContains, priceMin, priceMax, createdSince, updatedSince].some((part) => part != null);
}

function pageSize({ first, last }: Record<string, unknown>): number {
  const [name, size] = typeof last === 'number' ? (['last', last] as const) : (['first', first ?? DEFAULT_PAGE] as const);
  return Math.max(0, checked(name, Number(size)));
}

function listLength(args: Record<string, unknown>): number | undefined {
  for (const [name, value] of Object.entries(args)) if (Array.isArray(value)) return checked(name, value.length);
  return undefined;
}

function checked(name: string, size: number): number {
  if (size > MAX_PAGE) throw badInput(name, `must be at most ${MAX_PAGE}`);
  return size;
}

// Whatever else the values are, only how many they ask for, whether they search, and what they switch off, changes the cost.
function weightOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.length}]`;
  if (typeof value === 'number' || typeof value === 'boolean' || value == null) return String(value);
  return searches(value) ? 'search' : '';
}

function nameOf({ name }: OperationDefinitionNode): { operationName?: string } {
  return name ? { operationName: name.value } : {};
}

// The library counts the selections it looks at, and stops where fragments within fragments are too many. What else it throws
// is about an argument that is no value for its field.
function refusalOf(error: unknown): unknown {
  if (!(error instanceof GraphQLError)) return error;
  if (/maximum allowed number of nodes/.test(error.message)) return tooComplex('The query has too many selections');
  return new DomainError('BAD_USER_INPUT', error.message);
}
