import type { EntityManager } from '@mikro-orm/postgresql';
import {
  CompiledQuery,
  Kysely,
  PostgresDialect,
  type AbortableQueryOptions,
  type ColumnType,
  type QueryResult,
} from 'kysely';
import type { Abortable } from '../core/abort.ts';
import { withRetries } from './retry.ts';
import type { Statement } from './sql.ts';

type SnakeCase<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/**
 * The columns of an entity's table, for `em.getKysely<{ table: Columns<Entity> }>()`: its properties in
 * snake case. An INSERT may omit a column, because many have a default.
 */
export type Columns<T> = {
  [
    Name in keyof T & string as T[Name] extends (...args: never[]) => unknown
      ? never
      : SnakeCase<Name>
  ]: ColumnType<T[Name], T[Name] | undefined, T[Name]>;
};

/** A unit of work, and the request that it belongs to. */
interface Unit {
  em: EntityManager;
  request?: Abortable;
}

/**
 * Runs a statement of Kysely and returns its result. The end of the request cancels the statement.
 * Outside a transaction, the statement is a whole transaction, and is retried after a conflict.
 */
export function run<T>(
  { em, request }: Unit,
  statement: { execute(options?: AbortableQueryOptions): Promise<T> },
): Promise<T> {
  const execute = () => statement.execute(cancelledWith(request));
  return em.isInTransaction() ? execute() : withRetries(execute);
}

/** Returns the options of Kysely for a statement that the end of the request cancels. */
export function cancelledWith(request: Abortable | undefined): AbortableQueryOptions | undefined {
  return request && { signal: request.signal, inflightQueryAbortStrategy: 'cancel query' };
}

/** Like `run`, for the text of a statement. */
export function runStatement<Row>(
  unit: Unit,
  { text, values }: Statement,
): Promise<QueryResult<Row>> {
  const query = CompiledQuery.raw(text, [...values]);
  return run(unit, { execute: (options) => unit.em.getKysely().executeQuery<Row>(query, options) });
}

/** Tables that are known by name only. */
export type Tables = Record<string, Record<string, unknown>>;

/** Builds statements without a connection. */
export const builder = new Kysely<Tables>({
  dialect: new PostgresDialect({ pool: () => Promise.reject(new TypeError('No connection')) }),
});

/** A query or a raw text of Kysely, which needs a builder. */
export interface Query<Row = unknown> {
  compile(queries: typeof builder): CompiledQuery<Row>;
}

/** Returns the text and the values of a query. */
export function statementOf(query: Query): Statement {
  const { sql: text, parameters: values } = query.compile(builder);
  return { text, values };
}
