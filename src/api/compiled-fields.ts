import type { Context } from '../request/context.ts';
import type { Page } from '../pagination/keyset.ts';

/** JSON form of a column's cell. */
export type JsonForm = 'id' | 'text' | 'number' | 'time';

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
