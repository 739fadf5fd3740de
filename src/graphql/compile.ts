import {
  getArgumentValues,
  getVariableValues,
  Kind,
  OperationTypeNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql';
import { JSON_FORMS, type CompiledRoot, type RowFields } from '../api/compiled-fields.ts';
import { globalId } from '../api/node.ts';
import type { Page } from '../pagination/keyset.ts';
import type { Context } from '../request/context.ts';
import { fragmentsOf, selectionsIn } from './documents.ts';

/** An entity. */
type Row = object;
type RowPage = Page<Row>;
type Edge = RowPage['edges'][number];

/** Writes a row as JSON. */
type WriteRow = (row: Row) => string;

/** Writes a page as JSON. */
type WritePage = (page: RowPage) => Promise<string>;

/** Writes a field of a page. */
type WriteOfPage = (page: RowPage) => string | Promise<string>;

type Variables = Readonly<Record<string, unknown>>;

type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** A field of a compiled object: the text before its value, and the function that writes that. */
interface Member<Write> {
  prefix: string;
  write: Write;
}

/** Thrown by the compilation of a document that only the resolvers can execute. */
class NotCompiled extends Error {}

/** A query compiled to its statements and JSON writers. */
export interface Plan {
  /** The table that alone determines the result, for all clients. Undefined for several tables. */
  rowCounts: string | undefined;
  /** Returns the data as JSON; undefined if the resolvers have to execute the request. */
  run(ctx: Context, variables: Variables): Promise<string | undefined>;
}

interface CompiledField extends Plan {
  name: string;
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
  const compiler = new Compiler(root.row, fragments);
  const argsOf = (variables: Variables) => getArgumentValues(definition, first, variables);
  if (root.kind === 'one') {
    const write = compiler.compileRow(nodes);
    const run: Plan['run'] = async (ctx, variables) => {
      const row = await root.read(ctx, argsOf(variables), compiler.properties);
      return row ? write(row) : 'null';
    };
    return { name, rowCounts: root.rowCounts, run };
  }
  const write = compiler.compilePage(nodes);
  const run: Plan['run'] = async (ctx, variables) => {
    const page = await root.read(ctx, argsOf(variables), compiler.properties);
    return page && write(page);
  };
  return { name, rowCounts: root.rowCounts, run };
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

/**
 * Returns the fields of selections by response name, in order. Fields of one name are merged, and a
 * fragment counts once, as in execution (GraphQL, 6.3.2).
 */
function fieldsOf(
  types: readonly string[],
  selections: readonly SelectionSetNode[],
  fragments: Fragments,
): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const visited = new Set<string>();
  const fragmentOf = (name: string) => fragments.get(name);
  for (const part of selections.flatMap((set) => [...selectionsIn(set, fragmentOf, visited)])) {
    if (part.directives?.length) throw new NotCompiled();
    if (part.kind === Kind.FIELD) {
      const name = (part.alias ?? part.name).value;
      const known = fields.get(name);
      if (known) known.push(part);
      else fields.set(name, [part]);
      continue;
    }
    const fragment = part.kind === Kind.FRAGMENT_SPREAD ? fragmentOf(part.name.value) : part;
    const condition = fragment?.typeCondition?.name.value;
    if (!fragment || fragment.directives?.length) throw new NotCompiled();
    if (condition !== undefined && !types.includes(condition)) throw new NotCompiled();
  }
  return fields;
}

/** Compiles the selections of rows and pages. */
class Compiler {
  /** Properties that the compiled writers need. */
  readonly properties = new Set<string>();

  constructor(
    private readonly row: RowFields,
    private readonly fragments: Fragments,
  ) {}

  /** Returns the writer for these selections of a row. */
  compileRow(nodes: readonly FieldNode[]): WriteRow {
    const { type, key, fields } = this.row;
    return this.compileObject<Row>(nodes, [type, 'Node'], (name) => {
      if (name === 'id') this.properties.add(key);
      if (name === 'id') return (row) => `"${globalId(type, String(valueOf(row, key)))}"`;
      const field = fields[name];
      if (!field) throw new NotCompiled();
      this.properties.add(field.property);
      const write = JSON_FORMS[field.form];
      return (row) => {
        const value = valueOf(row, field.property);
        return value === null ? 'null' : write(value);
      };
    });
  }

  /** Returns the writer for these selections of a page. */
  compilePage(nodes: readonly FieldNode[]): WritePage {
    const { type } = this.row;
    return this.compileAsync(nodes, `${type}Connection`, (name, children) => {
      if (name === 'totalCount') return async (page) => String(await page.totalCount());
      if (name === 'nodes') {
        const write = this.compileRow(children);
        return ({ edges }) => `[${edges.map(({ node }) => write(node)).join(',')}]`;
      }
      if (name === 'edges') {
        const write = this.compileEdge(children);
        return ({ edges }) => `[${edges.map(write).join(',')}]`;
      }
      if (name === 'pageInfo')
        return this.compileAsync(children, 'PageInfo', (member) => PAGE_INFO[member]);
      throw new NotCompiled();
    });
  }

  private compileEdge(nodes: readonly FieldNode[]): (edge: Edge) => string {
    return this.compileObject<Edge>(nodes, [`${this.row.type}Edge`], (name, children) => {
      if (name === 'cursor') return cursorOf;
      if (name !== 'node') throw new NotCompiled();
      const write = this.compileRow(children);
      return ({ node }) => write(node);
    });
  }

  private compileObject<Value>(
    nodes: readonly FieldNode[],
    types: readonly [string, ...string[]],
    compile: (name: string, children: readonly FieldNode[]) => (value: Value) => string,
  ): (value: Value) => string {
    const members = this.compileMembers<(value: Value) => string>(nodes, types, compile);
    return (value) => {
      let text = '';
      for (const { prefix, write } of members) text += prefix + write(value);
      return `${text}}`;
    };
  }

  private compileAsync(
    nodes: readonly FieldNode[],
    type: string,
    compile: (name: string, children: readonly FieldNode[]) => WriteOfPage | undefined,
  ): WritePage {
    const members = this.compileMembers<WriteOfPage>(nodes, [type], compile);
    return async (page) => {
      let text = '';
      for (const { prefix, write } of members) {
        const value = write(page);
        text += prefix + (typeof value === 'string' ? value : await value);
      }
      return `${text}}`;
    };
  }

  /** Compiles the members of an object with one of these types from its selections. */
  private compileMembers<Write extends (...args: never[]) => string | Promise<string>>(
    nodes: readonly FieldNode[],
    types: readonly [string, ...string[]],
    compile: (name: string, children: readonly FieldNode[]) => Write | undefined,
  ): Member<Write | (() => string)>[] {
    const selections = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    return [...fieldsOf(types, selections, this.fragments)].map(([name, children], index) => {
      const [first] = children;
      // No compiled nested field has arguments.
      if (!first || first.arguments?.length) throw new NotCompiled();
      const write =
        first.name.value === '__typename'
          ? () => `"${types[0]}"`
          : compile(first.name.value, children);
      if (!write) throw new NotCompiled();
      return { prefix: `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`, write };
    });
  }
}

const PAGE_INFO: Readonly<Record<string, WriteOfPage>> = {
  hasNextPage: (page) => String(page.hasNextPage),
  hasPreviousPage: (page) => String(page.hasPreviousPage),
  startCursor: ({ edges }) => cursorOf(edges[0]),
  endCursor: ({ edges }) => cursorOf(edges.at(-1)),
};

function cursorOf(edge: Edge | undefined): string {
  return edge ? `"${edge.cursor}"` : 'null';
}

function valueOf(row: Row, property: string): unknown {
  return row[property as keyof Row];
}
