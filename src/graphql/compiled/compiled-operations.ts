import {
  execute,
  getArgumentValues,
  getVariableValues,
  Kind,
  OperationTypeNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import type { Context } from '../../request/context.ts';
import type { RootPlan } from '../../api/compiled-fields.ts';
import { DomainError } from '../../core/errors.ts';
import { counters, gauge } from '../../core/metrics.ts';
import { resolving } from '../../core/tracing-channels.ts';
import { Cost } from '../cost.ts';
import { visibleError } from '../../http/http-error.ts';
import { MAX_DOCUMENTS_BYTES, sizeOf } from '../documents.ts';
import type { Operations } from '../../telemetry/operations.ts';
import type { Operation } from '../../telemetry/request-record.ts';
import { fieldsOf, NotPlanned, planPage, planRow, type Fragments } from './compile.ts';

/** How long the longest document is that has a plan, in characters. */
const MAX_DOCUMENT = 10_000;

const lookups = counters(
  'shopfront_plan_lookups_total',
  'GraphQL requests that a plan could answer, by whether there was one.',
  'outcome',
  ['hit', 'miss'],
);

/** A request as GraphQL over HTTP sends it. */
export interface GraphqlRequest {
  query: string;
  operationName?: string;
  variables: Record<string, unknown>;
}

/** A document's way from its columns to its answer, made once. */
export interface Plan {
  /** As the log and the metrics name it. */
  operation: Operation;
  /** The tables that its answer is made from, and from nothing else: it is the same for everyone until one changes. */
  tallies: readonly string[];
  /** Whether it costs no more with these variables than is allowed. */
  allows(variables: Record<string, unknown>): boolean;
  /** The answer to a request that goes well; undefined where the resolvers have to be asked, who also know how to refuse. */
  answer(ctx: Context, variables: Record<string, unknown>): Promise<string | undefined>;
}

/** A plan that nobody has looked at the cost of. */
type Unlimited = Omit<Plan, 'allows' | 'operation'>;

interface PlannedField {
  name: string;
  answer(ctx: Context, variables: Record<string, unknown>): Promise<string | undefined>;
}

/** The plans of documents that have been parsed, validated and executed by the ordinary way before. */
export class Plans {
  private readonly known = new LRUCache<string, Plan>({ maxSize: MAX_DOCUMENTS_BYTES });

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly roots: ReadonlyMap<string, RootPlan>,
    /** GRAPHQL_MAX_COST. */
    private readonly maxCost: number,
    private readonly operations: Operations,
  ) {
    gauge('shopfront_plans', 'Plans that are kept.', () => this.known.size);
  }

  /** The plan of a request's document, where there is one. */
  of({ query, operationName }: GraphqlRequest): Plan | undefined {
    const plan = this.known.get(keyOf(query, operationName));
    if (plan) lookups.hit++;
    else lookups.miss++;
    return plan;
  }

  /** Makes a plan for a document that is known to be valid, if it asks for nothing but what plans can answer. */
  learn(source: string, operationName: string | undefined, document: DocumentNode): void {
    const key = keyOf(source, operationName);
    if (key.length > MAX_DOCUMENT || this.known.has(key)) return;
    const operation = operationNamed(document, operationName);
    if (operation?.operation !== OperationTypeNode.QUERY) return;
    const cost = new Cost(this.schema, document, operation, this.maxCost);
    const plan = {
      ...this.make(document, operation),
      operation: this.operations.of(operation),
      allows: (variables: Record<string, unknown>) => cost.allows(variables),
    };
    // It holds on to the document, and to its own text of it.
    this.known.set(key, plan, { size: sizeOf(document) + key.length });
  }

  private make(document: DocumentNode, operation: OperationDefinitionNode): Unlimited {
    try {
      return this.makeOfRows(document, operation);
    } catch (error) {
      if (!(error instanceof NotPlanned)) throw error;
    }
    return { tallies: [], answer: (ctx, variables) => executed(this.schema, document, operation, ctx, variables) };
  }

  private makeOfRows({ definitions }: DocumentNode, operation: OperationDefinitionNode): Unlimited {
    if ((operation.directives?.length ?? 0) > 0) throw new NotPlanned();
    const fragments: Fragments = new Map(
      definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION).map((fragment) => [fragment.name.value, fragment]),
    );
    const fields = [...fieldsOf(['Query'], [operation.selectionSet], fragments)].map(([name, nodes]) => this.plan(name, nodes, fragments));
    return {
      tallies: [...new Set(fields.flatMap(({ tally }) => tally))],
      answer: (ctx, variables) => answer(this.schema, operation, fields, ctx, variables),
    };
  }

  private plan(name: string, nodes: readonly FieldNode[], fragments: Fragments): PlannedField & { tally: string } {
    const [first] = nodes;
    const root = first && this.roots.get(first.name.value);
    const definition = first && this.schema.getQueryType()?.getFields()[first.name.value];
    if (!root || !definition) throw new NotPlanned();
    const field = `Query.${first.name.value}`;
    const properties: string[] = [];
    const argumentsOf = (variables: Record<string, unknown>) => getArgumentValues(definition, first, variables);
    if (root.kind === 'one') {
      const write = planRow(root.row, nodes, fragments, properties);
      const one = async (ctx: Context, variables: Record<string, unknown>) => {
        const row = await root.read(ctx, argumentsOf(variables), properties);
        return row ? write(row) : 'null';
      };
      return { name, tally: root.tally, answer: timed(field, one) };
    }
    const write = planPage(root.row, nodes, fragments, properties);
    const page = async (ctx: Context, variables: Record<string, unknown>) => {
      const read = await root.read(ctx, argumentsOf(variables), properties);
      return read && write(read);
    };
    return { name, tally: root.tally, answer: timed(field, page) };
  }
}

// As the resolver of the same field is.
function timed(field: string, read: PlannedField['answer']): PlannedField['answer'] {
  return (ctx, variables) => resolving.tracePromise(() => read(ctx, variables), { field });
}

// By the resolvers, without going through again what was found out about the document.
async function executed(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  contextValue: Context,
  variableValues: Record<string, unknown>,
): Promise<string | undefined> {
  const { errors, data } = await execute({ schema, document, contextValue, variableValues, operationName: operation.name?.value });
  if (!errors) return `${JSON.stringify({ data })}\n`;
  const [cause, ...others] = errors.map(({ originalError }) => originalError);
  // What could be read in part is answered.
  const isEmpty = Object.values(data ?? {}).every((value) => value === null);
  if (cause && isEmpty && [cause, ...others].every((error) => isHopeless(error, contextValue))) throw cause;
  return undefined;
}

function operationNamed({ definitions }: DocumentNode, name: string | undefined): OperationDefinitionNode | undefined {
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  if (name !== undefined) return operations.find((operation) => operation.name?.value === name);
  return operations.length === 1 ? operations[0] : undefined;
}

async function answer(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  fields: readonly PlannedField[],
  ctx: Context,
  given: Record<string, unknown>,
): Promise<string | undefined> {
  const { coerced } = getVariableValues(schema, variableDefinitions, given, { maxErrors: 1 });
  if (!coerced) return undefined;
  const values = await Promise.all(fields.map((field) => field.answer(ctx, coerced))).catch((error: unknown) =>
    leaveToResolvers(error, ctx),
  );
  if (!values || values.includes(undefined)) return undefined;
  return `{"data":{${fields.map(({ name }, index) => `${JSON.stringify(name)}:${values[index]}`).join(',')}}}\n`;
}

// How to refuse is the resolvers' business.
function leaveToResolvers(error: unknown, ctx: Context): undefined {
  if (isHopeless(error, ctx)) throw error;
}

// Where the database is not there, the resolvers would only wait for it once more, and where nobody waits, for nobody.
function isHopeless(error: unknown, { request }: Context): boolean {
  const seen = visibleError(error);
  return seen instanceof DomainError && (seen.code === 'UNAVAILABLE' || request?.isGivenUp === true);
}

function keyOf(query: string, operationName: string | undefined): string {
  return operationName === undefined ? query : JSON.stringify([operationName, query]);
}
