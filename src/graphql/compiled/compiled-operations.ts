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
import type { CompiledRoot } from '../../api/compiled-fields.ts';
import { DomainError } from '../../core/errors.ts';
import { counters, gauge } from '../../core/metrics.ts';
import { resolvingChannel } from '../../core/tracing-channels.ts';
import { Cost } from '../cost.ts';
import { visibleError } from '../../http/http-error.ts';
import { MAX_DOCUMENTS_BYTES, sizeOf } from '../documents.ts';
import type { Operations } from '../../telemetry/operations.ts';
import type { Operation } from '../../telemetry/request-record.ts';
import { fieldsOf, NotCompiled, compilePage, compileRow, type Fragments } from './compile.ts';

/** Maximum number of characters of a compiled document. */
const MAX_DOCUMENT_LENGTH = 10_000;

const lookups = counters(
  'shopfront_compiled_operation_lookups_total',
  'GraphQL requests looked up in the compiled operations, by outcome.',
  'outcome',
  ['hit', 'miss'],
);

/** A GraphQL over HTTP request. */
export interface GraphqlRequest {
  query: string;
  operationName?: string;
  variables: Record<string, unknown>;
}

/** An operation compiled to its statements and JSON writers. */
export interface CompiledOperation {
  /** Its name in the log and the metrics. */
  operation: Operation;
  /** Tables that alone determine its response, for all clients. Empty if it may read others. */
  rowCounts: readonly string[];
  /** Returns whether its cost with these variables is within the limit. */
  allows(variables: Record<string, unknown>): boolean;
  /** Returns a successful response; undefined if the resolvers have to execute the request. */
  run(ctx: Context, variables: Record<string, unknown>): Promise<string | undefined>;
}

/** A compiled operation without its cost and its name. */
type UncheckedOperation = Omit<CompiledOperation, 'allows' | 'operation'>;

interface CompiledField {
  name: string;
  run(ctx: Context, variables: Record<string, unknown>): Promise<string | undefined>;
}

/** Cache of compiled operations, of documents that Apollo Server has validated before. */
export class CompiledOperations {
  private readonly cache = new LRUCache<string, CompiledOperation>({
    maxSize: MAX_DOCUMENTS_BYTES,
  });

  constructor(
    private readonly schema: GraphQLSchema,
    private readonly roots: ReadonlyMap<string, CompiledRoot>,
    /** GRAPHQL_MAX_COST. */
    private readonly maxCost: number,
    private readonly operations: Operations,
  ) {
    gauge('shopfront_compiled_operations', 'Cached compiled operations.', () => this.cache.size);
  }

  /** Returns the compiled operation of a request, if any. */
  of({ query, operationName }: GraphqlRequest): CompiledOperation | undefined {
    const compiled = this.cache.get(keyOf(query, operationName));
    if (compiled) lookups.hit++;
    else lookups.miss++;
    return compiled;
  }

  /** Compiles the operation of a valid document if it is a query. */
  add(
    source: string,
    operationName: string | undefined,
    document: DocumentNode,
    operation: OperationDefinitionNode | undefined,
  ): void {
    const key = keyOf(source, operationName);
    if (key.length > MAX_DOCUMENT_LENGTH || this.cache.has(key)) return;
    // It is undefined if the document has no operation of this name.
    if (operation?.operation !== OperationTypeNode.QUERY) return;
    const cost = new Cost(this.schema, document, operation, this.maxCost);
    const compiled = {
      ...this.compile(document, operation),
      operation: this.operations.of(operation),
      allows: (variables: Record<string, unknown>) => cost.allows(variables),
    };
    // The entry retains the document, and the text as its key.
    this.cache.set(key, compiled, { size: sizeOf(document) + key.length });
  }

  private compile(document: DocumentNode, operation: OperationDefinitionNode): UncheckedOperation {
    try {
      return this.compileFields(document, operation);
    } catch (error) {
      if (!(error instanceof NotCompiled)) throw error;
    }
    return {
      rowCounts: [],
      run: (ctx, variables) =>
        executeWithResolvers(this.schema, document, operation, ctx, variables),
    };
  }

  private compileFields(
    { definitions }: DocumentNode,
    operation: OperationDefinitionNode,
  ): UncheckedOperation {
    if ((operation.directives?.length ?? 0) > 0) throw new NotCompiled();
    const fragments: Fragments = new Map(
      definitions
        .filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION)
        .map((fragment) => [fragment.name.value, fragment]),
    );
    const fields = [...fieldsOf(['Query'], [operation.selectionSet], fragments)].map(
      ([name, nodes]) => this.compileField(name, nodes, fragments),
    );
    return {
      rowCounts: [...new Set(fields.flatMap(({ rowCounts }) => rowCounts))],
      run: (ctx, variables) => runFields(this.schema, operation, fields, ctx, variables),
    };
  }

  private compileField(
    name: string,
    nodes: readonly FieldNode[],
    fragments: Fragments,
  ): CompiledField & { rowCounts: string } {
    const [first] = nodes;
    const root = first && this.roots.get(first.name.value);
    const definition = first && this.schema.getQueryType()?.getFields()[first.name.value];
    if (!root || !definition) throw new NotCompiled();
    const field = `Query.${first.name.value}`;
    const properties: string[] = [];
    const argumentsOf = (variables: Record<string, unknown>) =>
      getArgumentValues(definition, first, variables);
    if (root.kind === 'one') {
      const write = compileRow(root.row, nodes, fragments, properties);
      const one = async (ctx: Context, variables: Record<string, unknown>) => {
        const row = await root.read(ctx, argumentsOf(variables), properties);
        return row ? write(row) : 'null';
      };
      return { name, rowCounts: root.rowCounts, run: timed(field, one) };
    }
    const write = compilePage(root.row, nodes, fragments, properties);
    const page = async (ctx: Context, variables: Record<string, unknown>) => {
      const read = await root.read(ctx, argumentsOf(variables), properties);
      return read && write(read);
    };
    return { name, rowCounts: root.rowCounts, run: timed(field, page) };
  }
}

// Traces the field as its resolver is traced.
function timed(field: string, read: CompiledField['run']): CompiledField['run'] {
  return (ctx, variables) => resolvingChannel.tracePromise(() => read(ctx, variables), { field });
}

// Executes by the resolvers, without parsing and validating the document again.
async function executeWithResolvers(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  contextValue: Context,
  variableValues: Record<string, unknown>,
): Promise<string | undefined> {
  const { errors, data } = await execute({
    schema,
    document,
    contextValue,
    variableValues,
    operationName: operation.name?.value,
  });
  if (!errors) return `${JSON.stringify({ data })}\n`;
  const [cause, ...others] = errors.map(({ originalError }) => originalError);
  // Apollo Server returns partial data.
  const isEmpty = Object.values(data ?? {}).every((value) => value === null);
  if (cause && isEmpty && [cause, ...others].every((error) => isFinal(error, contextValue)))
    throw cause;
  return undefined;
}

async function runFields(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  fields: readonly CompiledField[],
  ctx: Context,
  variables: Record<string, unknown>,
): Promise<string | undefined> {
  const { coerced } = getVariableValues(schema, variableDefinitions, variables, { maxErrors: 1 });
  if (!coerced) return undefined;
  const values = await Promise.all(fields.map((field) => field.run(ctx, coerced))).catch(
    (error: unknown) => fallBack(error, ctx),
  );
  if (!values || values.includes(undefined)) return undefined;
  return `{"data":{${fields.map(({ name }, index) => `${JSON.stringify(name)}:${values[index]}`).join(',')}}}\n`;
}

// Lets the resolvers format the error, unless it is final.
function fallBack(error: unknown, ctx: Context): undefined {
  if (isFinal(error, ctx)) throw error;
}

// The resolvers would only wait again for an unavailable database, or for an aborted request.
function isFinal(error: unknown, { request }: Context): boolean {
  const visible = visibleError(error);
  return (
    visible instanceof DomainError &&
    (visible.code === 'UNAVAILABLE' || request?.signal.aborted === true)
  );
}

function keyOf(query: string, operationName: string | undefined): string {
  return operationName === undefined ? query : JSON.stringify([operationName, query]);
}
