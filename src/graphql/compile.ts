import { Kind, type FieldNode, type FragmentDefinitionNode, type SelectionSetNode } from 'graphql';
import { globalId } from '../api/node.ts';
import type { JsonForm, RowFields } from '../api/compiled-fields.ts';
import type { RowPage } from '../pagination/keyset.ts';
import { readTime, type Cell } from '../database/sql.ts';
import { selectionsIn } from './selections.ts';

type Row = readonly Cell[];

/** Writes a row as JSON. */
export type WriteRow = (row: Row) => string;

/** Writes a page as JSON. */
export type WritePage = (page: RowPage) => Promise<string>;

/** Writes a field of a page. */
type WriteOfPage = (page: RowPage) => string | Promise<string>;

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** A field of a compiled object: the text before its value, and the function that writes that. */
interface Member<Write> {
  prefix: string;
  write: Write;
}

/** Thrown by the compilation of a document that only the resolvers can execute. */
export class NotCompiled extends Error {}

/**
 * Returns the fields of selections by response name, in order. Fields of one name are merged, and a
 * fragment counts once, as in execution (GraphQL, 6.3.2).
 */
export function fieldsOf(
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

/** Compiles the selections of rows and pages. Collects the properties of the rows that they read. */
export class Compiler {
  readonly properties: string[] = [];

  constructor(
    private readonly row: RowFields,
    private readonly fragments: Fragments,
  ) {}

  /** Returns the writer for these selections of a row. */
  compileRow(nodes: readonly FieldNode[]): WriteRow {
    const { type, key, fields } = this.row;
    const members = this.compileMembers<WriteRow>(nodes, [type, 'Node'], (name) => {
      if (name === 'id') {
        const index = this.indexOf(key);
        return (cells) => `"${globalId(type, String(cells[index]))}"`;
      }
      const field = fields[name];
      if (!field) throw new NotCompiled();
      const index = this.indexOf(field.property);
      const write = FORMATTERS[field.form];
      return (cells) => {
        // Outside a transaction, a cell is text or null.
        const cell = cells[index] as string | null;
        return cell === null ? 'null' : write(cell);
      };
    });
    return (cells) => {
      let text = '';
      for (const { prefix, write } of members) text += prefix + write(cells);
      return `${text}}`;
    };
  }

  /** Returns the writer for these selections of a page. */
  compilePage(nodes: readonly FieldNode[]): WritePage {
    const { type } = this.row;
    return this.compileAsync(nodes, `${type}Connection`, (name, children) => {
      if (name === 'totalCount') return async (page) => String(await page.totalCount());
      if (name === 'nodes') {
        const write = this.compileRow(children);
        return ({ rows }) => `[${rows.map(write).join(',')}]`;
      }
      if (name === 'edges') {
        const write = this.compileEdge(children);
        return (page) => `[${page.rows.map((cells) => write(page, cells)).join(',')}]`;
      }
      if (name === 'pageInfo')
        return this.compileAsync(children, 'PageInfo', (member) => PAGE_INFO[member]);
      throw new NotCompiled();
    });
  }

  private compileEdge(nodes: readonly FieldNode[]): (page: RowPage, cells: Row) => string {
    const members = this.compileMembers<(page: RowPage, cells: Row) => string>(
      nodes,
      [`${this.row.type}Edge`],
      (name, children) => {
        if (name === 'cursor') return (page, cells) => `"${page.cursor(cells)}"`;
        if (name !== 'node') throw new NotCompiled();
        const write = this.compileRow(children);
        return (_page, cells) => write(cells);
      },
    );
    return (page, cells) => {
      let text = '';
      for (const { prefix, write } of members) text += prefix + write(page, cells);
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

  private indexOf(property: string): number {
    const index = this.properties.indexOf(property);
    return index >= 0 ? index : this.properties.push(property) - 1;
  }
}

const PAGE_INFO: Readonly<Record<string, WriteOfPage>> = {
  hasNextPage: async (page) => String(await page.hasNextPage()),
  hasPreviousPage: async (page) => String(await page.hasPreviousPage()),
  startCursor: (page) => cursorOf(page, page.rows[0]),
  endCursor: (page) => cursorOf(page, page.rows.at(-1)),
};

function cursorOf(page: RowPage, row: Row | undefined): string {
  return row ? `"${page.cursor(row)}"` : 'null';
}

// Write the same text as JSON.stringify for the serialized scalar.
const FORMATTERS: Record<JsonForm, (cell: string) => string> = {
  id: (cell) => `"${cell}"`,
  text: (cell) => JSON.stringify(cell),
  // JavaScript omits trailing zeros of a fraction.
  number: (cell) => (cell.includes('.') ? cell.replace(/\.?0+$/, '') : cell),
  time: (cell) => `"${readTime(cell).toISOString()}"`,
};
