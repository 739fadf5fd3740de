import type { Selection } from '../settings.ts';

/** A line of an operation. */
export interface Line {
  depth: number;
  text: string;
  /** Path of a field without subfields in the response, with `.` between names. */
  leaf?: string;
}

/** An operation without the fields that are left out. */
export interface Operation {
  text: string;
  /** Paths that the response lacks. */
  leftOut: ReadonlySet<string>;
}

/** Returns the lines of an operation or response. */
export function linesOf({ open, fields, close }: Selection, depth = 0, parent = ''): Line[] {
  return [
    { depth, text: open },
    ...fields.flatMap(({ text, name, selection }) => {
      if (!selection) return [{ depth: depth + 1, text, leaf: parent + name }];
      const line = { ...selection, open: text + selection.open };
      return linesOf(line, depth + 1, `${parent}${name}.`);
    }),
    { depth, text: close },
  ];
}

/** Returns the operation without these fields, and without those whose subfields are all among them. */
export function withoutFields(operation: Selection, unwanted: ReadonlySet<string>): Operation {
  const leftOut = new Set<string>();
  const remaining = (selection: Selection, parent: string): Selection => ({
    ...selection,
    fields: selection.fields.flatMap((field) => {
      const path = parent + field.name;
      const subfields = field.selection && remaining(field.selection, `${path}.`);
      if (subfields ? subfields.fields.length > 0 : !unwanted.has(path))
        return [{ ...field, ...(subfields && { selection: subfields }) }];
      leftOut.add(path);
      return [];
    }),
  });
  const wanted = remaining(operation, '');
  const text = linesOf(wanted)
    .map(({ depth, text: line }) => '  '.repeat(depth) + line)
    .join('\n');
  return { text: wanted.fields.length > 0 ? text : '', leftOut };
}
