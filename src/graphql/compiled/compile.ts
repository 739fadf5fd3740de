import { Kind, type FieldNode, type SelectionSetNode, type FragmentDefinitionNode } from 'graphql';
import { globalId } from '../../api/node.ts';
import type { JsonForm, RowFields } from '../../api/compiled-fields.ts';
import type { RowPage } from '../../pagination/keyset.ts';
import { readTime, type Cell } from '../../database/sql.ts';

/** Writes one row as JSON. */
export type WriteRow = (row: readonly Cell[]) => string;

/** Writes a page as JSON. */
export type WritePage = (page: RowPage) => Promise<string>;

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

/** Thrown while a plan is made, where the document asks for what plans do not know; the resolvers do. */
export class NotPlanned extends Error {}

/** The fields of a selection by the name they have in the answer, in order; those named alike are one field of all their parts. */
export function fieldsOf(
  types: readonly string[],
  selections: readonly SelectionSetNode[],
  fragments: Fragments,
): Map<string, FieldNode[]> {
  const found = new Map<string, FieldNode[]>();
  const collect = ({ selections: parts }: SelectionSetNode): void => {
    for (const part of parts) {
      if (part.directives && part.directives.length > 0) throw new NotPlanned();
      if (part.kind === Kind.FIELD) {
        const name = (part.alias ?? part.name).value;
        found.set(name, [...(found.get(name) ?? []), part]);
        continue;
      }
      const spread = part.kind === Kind.FRAGMENT_SPREAD ? fragments.get(part.name.value) : part;
      const condition = spread?.typeCondition?.name.value;
      if (!spread || (condition !== undefined && !types.includes(condition))) throw new NotPlanned();
      if (spread.directives && spread.directives.length > 0) throw new NotPlanned();
      collect(spread.selectionSet);
    }
  };
  selections.forEach(collect);
  return found;
}

/** What to read of a row for these selections, and how to write it. `properties` grows by what is to be read. */
export function planRow(row: RowFields, nodes: readonly FieldNode[], fragments: Fragments, properties: string[]): WriteRow {
  const parts = partsOf(nodes, [row.type, 'Node'], fragments, (name) => {
    if (name === '__typename') return () => JSON.stringify(row.type);
    if (name === 'id') {
      const at = placeIn(properties, row.key);
      return (cells: readonly Cell[]) => `"${globalId(row.type, String(cells[at]))}"`;
    }
    const field = row.fields[name];
    if (!field) throw new NotPlanned();
    const at = placeIn(properties, field.property);
    const write = FORMS[field.form];
    return (cells: readonly Cell[]) => write(String(cells[at]));
  });
  return (cells) => {
    let text = '';
    for (const { lead, write } of parts) text += lead + write(cells);
    return `${text}}`;
  };
}

/** What to read of a page for these selections, and how to write it. */
export function planPage(row: RowFields, nodes: readonly FieldNode[], fragments: Fragments, properties: string[]): WritePage {
  const parts = partsOf(nodes, [`${row.type}Connection`], fragments, (name, own): ((page: RowPage) => string | Promise<string>) => {
    switch (name) {
      case '__typename':
        return () => `"${row.type}Connection"`;
      case 'totalCount':
        return async (page) => String(await page.totalCount());
      case 'nodes': {
        const write = planRow(row, own, fragments, properties);
        return ({ rows }) => `[${rows.map(write).join(',')}]`;
      }
      case 'edges': {
        const write = planEdge(row, own, fragments, properties);
        return (page) => `[${page.rows.map((cells) => write(page, cells)).join(',')}]`;
      }
      case 'pageInfo':
        return planPageInfo(own, fragments);
      default:
        throw new NotPlanned();
    }
  });
  return (page) => joined(parts, page);
}

function planEdge(row: RowFields, nodes: readonly FieldNode[], fragments: Fragments, properties: string[]) {
  const parts = partsOf(nodes, [`${row.type}Edge`], fragments, (name, own): ((page: RowPage, cells: readonly Cell[]) => string) => {
    if (name === '__typename') return () => `"${row.type}Edge"`;
    if (name === 'cursor') return (page, cells) => `"${page.cursor(cells)}"`;
    if (name !== 'node') throw new NotPlanned();
    const write = planRow(row, own, fragments, properties);
    return (_page, cells) => write(cells);
  });
  return (page: RowPage, cells: readonly Cell[]): string => {
    let text = '';
    for (const { lead, write } of parts) text += lead + write(page, cells);
    return `${text}}`;
  };
}

function planPageInfo(nodes: readonly FieldNode[], fragments: Fragments) {
  const parts = partsOf(nodes, ['PageInfo'], fragments, (name): ((page: RowPage) => string | Promise<string>) => {
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
        throw new NotPlanned();
    }
  });
  return (page: RowPage) => joined(parts, page);
}

interface Part<Write> {
  /** What stands before the value: a brace or a comma, and the name. */
  lead: string;
  write: Write;
}

/** The members of an object, as its selections ask for them. */
function partsOf<Write>(
  nodes: readonly FieldNode[],
  types: readonly string[],
  fragments: Fragments,
  plan: (name: string, own: readonly FieldNode[]) => Write,
): Part<Write>[] {
  const selections = nodes.map(({ selectionSet }) => selectionSet).filter((set) => set !== undefined);
  return [...fieldsOf(types, selections, fragments)].map(([name, own], index) => {
    const [first] = own;
    // Only fields of a row take no arguments for granted; those of ours have none.
    if (!first || (first.arguments && first.arguments.length > 0)) throw new NotPlanned();
    return { lead: `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`, write: plan(first.name.value, own) };
  });
}

async function joined(parts: readonly Part<(page: RowPage) => string | Promise<string>>[], page: RowPage): Promise<string> {
  let text = '';
  for (const { lead, write } of parts) {
    const value = write(page);
    text += lead + (typeof value === 'string' ? value : await value);
  }
  return `${text}}`;
}

function cursorOf(page: RowPage, at: 0 | -1): string {
  const row = page.rows.at(at);
  return row ? `"${page.cursor(row)}"` : 'null';
}

function placeIn(properties: string[], property: string): number {
  const at = properties.indexOf(property);
  return at >= 0 ? at : properties.push(property) - 1;
}

// As JSON.stringify writes what the scalars of these fields make of them.
const FORMS: Record<JsonForm, (cell: string) => string> = {
  id: (cell) => `"${cell}"`,
  text: (cell) => JSON.stringify(cell),
  // JavaScript writes no zeros at the end of a fraction.
  number: (cell) => (cell.includes('.') ? cell.replace(/\.?0+$/, '') : cell),
  time: (cell) => `"${readTime(cell).toISOString()}"`,
};
