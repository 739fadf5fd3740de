import type { Context } from '../request/context.ts';
import type { RowPage } from '../pagination/keyset.ts';
import type { Cell } from '../database/sql.ts';

/** How a column's cell stands in a JSON answer. */
export type JsonForm = 'id' | 'text' | 'number' | 'time';

/** The fields of a GraphQL type that are a column and nothing more, by name: what a plan can read without an entity. */
export interface RowFields {
  type: string;
  /** The property that the global id is made from. */
  key: string;
  fields: Readonly<Record<string, { property: string; form: JsonForm }>>;
}

/**
 * A root field that can be answered straight from rows, by the same service as its resolver calls. `arguments` are as GraphQL
 * coerced them; what the plan does not know of, it leaves to the resolver by answering undefined.
 */
export type RootPlan = { row: RowFields; /** Its answer is the same for everyone until this table changes (tally.ts). */ tally: string } & (
  | { kind: 'page'; read(ctx: Context, args: Arguments, properties: readonly string[]): Promise<RowPage> | undefined }
  | { kind: 'one'; read(ctx: Context, args: Arguments, properties: readonly string[]): Promise<readonly Cell[] | undefined> }
);

/** The coerced arguments of a field. */
type Arguments = Readonly<Record<string, unknown>>;
