import {
  getArgumentValues,
  getVariableValues,
  OperationTypeNode,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
} from 'graphql';
import type { CompiledRoot } from '../api/compiled-fields.ts';
import type { Context } from '../request/context.ts';
import { resolvingChannel } from '../core/tracing-channels.ts';
import { Compiler, fieldsOf, NotCompiled, type Fragments } from './compile.ts';
import { fragmentsOf } from './selections.ts';

type Variables = Readonly<Record<string, unknown>>;

/** A query compiled to its statements and JSON writers. */
export interface Plan {
  /** The table that alone determines the result, for all clients. Undefined for several tables. */
  rowCounts: string | undefined;
  /** Returns the data as JSON; undefined if the resolvers have to execute the request. */
  run(ctx: Context, variables: Variables): Promise<string | undefined>;
}

interface CompiledField {
  name: string;
  rowCounts: string;
  run(ctx: Context, variables: Record<string, unknown>): Promise<string | undefined>;
}

/** Compiles an operation. Returns undefined if only the resolvers can execute it. */
export function compilePlan(
  schema: GraphQLSchema,
  roots: ReadonlyMap<string, CompiledRoot>,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): Plan | undefined {
  if (operation.operation !== OperationTypeNode.QUERY || operation.directives?.length)
    return undefined;
  const fragments = fragmentsOf(document);
  try {
    const selected = fieldsOf(['Query'], [operation.selectionSet], fragments);
    const fields = [...selected].map(([name, nodes]) =>
      compileField(schema, roots, name, nodes, fragments),
    );
    const [rowCounts, ...others] = new Set(fields.map((field) => field.rowCounts));
    return {
      rowCounts: others.length > 0 ? undefined : rowCounts,
      run: (ctx, variables) => runFields(schema, operation, fields, ctx, variables),
    };
  } catch (error) {
    if (error instanceof NotCompiled) return undefined;
    throw error;
  }
}

function compileField(
  schema: GraphQLSchema,
  roots: ReadonlyMap<string, CompiledRoot>,
  name: string,
  nodes: readonly FieldNode[],
  fragments: Fragments,
): CompiledField {
  const [first] = nodes;
  const root = first && roots.get(first.name.value);
  const definition = first && schema.getQueryType()?.getFields()[first.name.value];
  if (!root || !definition) throw new NotCompiled();
  const read = compileRead(root, nodes, fragments);
  const work = { field: `Query.${first.name.value}` };
  return {
    name,
    rowCounts: root.rowCounts,
    // Traces the field as its resolver is traced.
    run: (ctx, variables) =>
      resolvingChannel.tracePromise(
        () => read(ctx, getArgumentValues(definition, first, variables)),
        { ...work },
      ),
  };
}

/** Returns the function that reads a root field with its arguments as JSON. */
function compileRead(
  root: CompiledRoot,
  nodes: readonly FieldNode[],
  fragments: Fragments,
): (ctx: Context, args: Variables) => Promise<string | undefined> {
  const compiler = new Compiler(root.row, fragments);
  const { properties } = compiler;
  if (root.kind === 'one') {
    const write = compiler.compileRow(nodes);
    return async (ctx, args) => {
      const row = await root.read(ctx, args, properties);
      return row ? write(row) : 'null';
    };
  }
  const write = compiler.compilePage(nodes);
  return async (ctx, args) => {
    const page = await root.read(ctx, args, properties);
    return page && write(page);
  };
}

async function runFields(
  schema: GraphQLSchema,
  { variableDefinitions = [] }: OperationDefinitionNode,
  fields: readonly CompiledField[],
  ctx: Context,
  variables: Variables,
): Promise<string | undefined> {
  const { coerced } = getVariableValues(schema, variableDefinitions, variables, { maxErrors: 1 });
  if (!coerced) return undefined;
  const values = await Promise.all(fields.map((field) => field.run(ctx, coerced)));
  if (values.includes(undefined)) return undefined;
  return `{${fields.map(({ name }, index) => `${JSON.stringify(name)}:${values[index]}`).join(',')}}`;
}
