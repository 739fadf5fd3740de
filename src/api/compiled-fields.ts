import type { Context } from '../request/context.ts';
import type { Page } from '../pagination/keyset.ts';

/** JSON forms of a column's cell: each writes the same text as JSON.stringify for its scalar. */
export const JSON_FORMS = {
  id: (value: unknown) => `"${String(value)}"`,
  text: JSON.stringify,
  // Most prices are the shortest text of their number already.
  number: (value: unknown) =>
    String(/^\d{1,9}(\.\d?[1-9])?$/.test(String(value)) ? value : Number(value)),
  time: JSON.stringify,
} as const;

export type JsonForm = keyof typeof JSON_FORMS;

/** Fields of a GraphQL type that are a single column, so they need no entity. */
export interface RowFields {
  type: string;
  /** Property in the global id. */
  key: string;
  fields: Readonly<Record<string, { property: string; form: JsonForm }>>;
}

/** Reads the rows of a field from its coerced arguments, with at least these properties. */
type Read<Result> = (
  ctx: Context,
  args: Readonly<Record<string, unknown>>,
  properties: ReadonlySet<string>,
) => Result;

/**
 * A root field that can be resolved from database rows, by the service that its resolver calls.
 * `read` returns undefined to leave the request to the resolver.
 */
export type CompiledRoot = {
  row: RowFields;
  /** The result is the same for everyone until this table changes. */
  rowCounts: string;
} & (
  | { kind: 'page'; read: Read<Promise<Page<object>> | undefined> }
  | { kind: 'one'; read: Read<Promise<object | null>> }
);
