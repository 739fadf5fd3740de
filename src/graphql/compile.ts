import { Kind, type FieldNode, type SelectionSetNode, type FragmentDefinitionNode } from 'graphql';
import { globalId } from '../api/node.ts';
import type { JsonForm, RowFields } from '../api/compiled-fields.ts';
import type { RowPage } from '../pagination/keyset.ts';
import { readTime, type Cell } from '../database/sql.ts';

/** Writes a row as JSON. */
export type WriteRow = (row: readonly Cell[]) => string;

/** Writes a page as JSON. */
export type WritePage = (page: RowPage) => Promise<string>;

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** Thrown by the compilation of a document that only the resolvers can execute. */
export class NotCompiled extends Error {}

/** Returns the fields of selections by response name, in order. Fields of one name are merged. */
export function fieldsOf(
  types: readonly string[],
  selections: readonly SelectionSetNode[],
  fragments: Fragments,
): Map<string, FieldNode[]> {
  const fields = new Map<string, FieldNode[]>();
  const collect = ({ selections: parts }: SelectionSetNode): void => {
    for (const part of parts) {
      if (part.directives && part.directives.length > 0) throw new NotCompiled();
      if (part.kind === Kind.FIELD) {
        const name = (part.alias ?? part.name).value;
        fields.set(name, [...(fields.get(name) ?? []), part]);
        continue;
      }
      const spread = part.kind === Kind.FRAGMENT_SPREAD ? fragments.get(part.name.value) : part;
      const condition = spread?.typeCondition?.name.value;
      if (!spread || (condition !== undefined && !types.includes(condition)))
        throw new NotCompiled();
      if (spread.directives && spread.directives.length > 0) throw new NotCompiled();
      collect(spread.selectionSet);
    }
  };
  selections.forEach(collect);
  return fields;
}

/** Returns the writer for these selections of a row. Adds what it reads to `properties`. */
export function compileRow(
  row: RowFields,
  nodes: readonly FieldNode[],
  fragments: Fragments,
  properties: string[],
): WriteRow {
  const parts = compileParts(nodes, [row.type, 'Node'], fragments, (name) => {
    if (name === '__typename') return () => JSON.stringify(row.type);
    if (name === 'id') {
      const index = indexIn(properties, row.key);
      return (cells: readonly Cell[]) => `"${globalId(row.type, String(cells[index]))}"`;
    }
    const field = row.fields[name];
    if (!field) throw new NotCompiled();
    const index = indexIn(properties, field.property);
    const write = FORMATTERS[field.form];
    return (cells: readonly Cell[]) => {
      // Outside a transaction, a cell is text or null.
      const cell = cells[index] as string | null;
      return cell === null ? 'null' : write(cell);
    };
  });
  return (cells) => {
    let text = '';
    for (const { prefix, write } of parts) text += prefix + write(cells);
    return `${text}}`;
  };
}

/** Returns the writer for these selections of a page. Adds what it reads to `properties`. */
export function compilePage(
  row: RowFields,
  nodes: readonly FieldNode[],
  fragments: Fragments,
  properties: string[],
): WritePage {
  const parts = compileParts(
    nodes,
    [`${row.type}Connection`],
    fragments,
    (name, fieldNodes): ((page: RowPage) => string | Promise<string>) => {
      switch (name) {
        case '__typename':
          return () => `"${row.type}Connection"`;
        case 'totalCount':
          return async (page) => String(await page.totalCount());
        case 'nodes': {
          const write = compileRow(row, fieldNodes, fragments, properties);
          return ({ rows }) => `[${rows.map(write).join(',')}]`;
        }
        case 'edges': {
          const write = compileEdge(row, fieldNodes, fragments, properties);
          return (page) => `[${page.rows.map((cells) => write(page, cells)).join(',')}]`;
        }
        case 'pageInfo':
          return compilePageInfo(fieldNodes, fragments);
        default:
          throw new NotCompiled();
      }
    },
  );
  return (page) => writeParts(parts, page);
}

function compileEdge(
  row: RowFields,
  nodes: readonly FieldNode[],
  fragments: Fragments,
  properties: string[],
) {
  const parts = compileParts(
    nodes,
    [`${row.type}Edge`],
    fragments,
    (name, fieldNodes): ((page: RowPage, cells: readonly Cell[]) => string) => {
      if (name === '__typename') return () => `"${row.type}Edge"`;
      if (name === 'cursor') return (page, cells) => `"${page.cursor(cells)}"`;
      if (name !== 'node') throw new NotCompiled();
      const write = compileRow(row, fieldNodes, fragments, properties);
      return (_page, cells) => write(cells);
    },
  );
  return (page: RowPage, cells: readonly Cell[]): string => {
    let text = '';
    for (const { prefix, write } of parts) text += prefix + write(page, cells);
    return `${text}}`;
  };
}

function compilePageInfo(nodes: readonly FieldNode[], fragments: Fragments) {
  const parts = compileParts(
    nodes,
    ['PageInfo'],
    fragments,
    (name): ((page: RowPage) => string | Promise<string>) => {
      switch (name) {
        case '__typename':
          return () => '"PageInfo"';
        case 'hasNextPage':
          return async (page) => String(await page.hasNextPage());
        case 'hasPreviousPage':
          return async (page) => String(await page.hasPreviousPage());
        case 'startCursor':
          return (page) => cursorOf(page, 0);
        case 'endCursor':
          return (page) => cursorOf(page, -1);
        default:
          throw new NotCompiled();
      }
    },
  );
  return (page: RowPage) => writeParts(parts, page);
}

interface Part<Write> {
  /** Text before the value: a brace or a comma, and the name. */
  prefix: string;
  write: Write;
}

/** Compiles the members of an object from its selections. */
function compileParts<Write>(
  nodes: readonly FieldNode[],
  types: readonly string[],
  fragments: Fragments,
  compile: (name: string, fieldNodes: readonly FieldNode[]) => Write,
): Part<Write>[] {
  const selections = nodes
    .map(({ selectionSet }) => selectionSet)
    .filter((set) => set !== undefined);
  return [...fieldsOf(types, selections, fragments)].map(([name, fieldNodes], index) => {
    const [first] = fieldNodes;
    // No compiled nested field has arguments.
    if (!first || (first.arguments && first.arguments.length > 0)) throw new NotCompiled();
    return {
      prefix: `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`,
      write: compile(first.name.value, fieldNodes),
    };
  });
}

async function writeParts(
  parts: readonly Part<(page: RowPage) => string | Promise<string>>[],
  page: RowPage,
): Promise<string> {
  let text = '';
  for (const { prefix, write } of parts) {
    const value = write(page);
    text += prefix + (typeof value === 'string' ? value : await value);
  }
  return `${text}}`;
}

function cursorOf(page: RowPage, index: 0 | -1): string {
  const row = page.rows.at(index);
  return row ? `"${page.cursor(row)}"` : 'null';
}

function indexIn(properties: string[], property: string): number {
  const index = properties.indexOf(property);
  return index >= 0 ? index : properties.push(property) - 1;
}

// Write the same text as JSON.stringify for the serialized scalar.
const FORMATTERS: Record<JsonForm, (cell: string) => string> = {
  id: (cell) => `"${cell}"`,
  text: (cell) => JSON.stringify(cell),
  // JavaScript omits trailing zeros of a fraction.
  number: (cell) => (cell.includes('.') ? cell.replace(/\.?0+$/, '') : cell),
  time: (cell) => `"${readTime(cell).toISOString()}"`,
};
