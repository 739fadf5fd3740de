import type { Context } from '../request/context.ts';
import type { RowPage } from '../pagination/keyset.ts';
import type { Cell } from '../database/sql.ts';

/** JSON form of a column's cell. */
export type JsonForm = 'id' | 'text' | 'number' | 'time';

/** Fields of a GraphQL type that are a single column, so they need no entity. */
export interface RowFields {
  type: string;
  /** Property in the global id. */
  key: string;
  fields: Readonly<Record<string, { property: string; form: JsonForm }>>;
}

/**
 * A root field that can be resolved from database rows, by the service that its resolver calls.
 * `read` gets the coerced arguments, and returns undefined to leave the request to the resolver.
 */
export type CompiledRoot = {
  row: RowFields;
  /** The result is the same for everyone until this table changes. */ rowCounts: string;
} & (
  | {
      kind: 'page';
      read(
        ctx: Context,
        args: Arguments,
        properties: readonly string[],
      ): Promise<RowPage> | undefined;
    }
  | {
      kind: 'one';
      read(
        ctx: Context,
        args: Arguments,
        properties: readonly string[],
      ): Promise<readonly Cell[] | undefined>;
    }
);

/** Coerced arguments of a field. */
type Arguments = Readonly<Record<string, unknown>>;
