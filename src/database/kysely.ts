import type { EntityClass, EntityManager } from '@mikro-orm/postgresql';
import {
  CompiledQuery,
  Kysely,
  PostgresDialect,
  type AbortableQueryOptions,
  type ColumnType,
  type QueryResult,
} from 'kysely';
import { LRUCache } from 'lru-cache';
import pRetry from 'p-retry';
import type { Abortable } from '../core/abort.ts';
import { BATCH_SIZE, inBatches } from '../core/batches.ts';
import type { Statement, Statements } from './sql.ts';

/** Maximum number of retries. */
const RETRIES = 3;
/**
 * Delay of the first retry, in ms. Randomized to up to twice as long, so that the same transactions
 * do not conflict again. Each further delay is longer.
 */
const FIRST_DELAY_MS = 20;

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

/**
 * Runs a whole transaction. Retries it if PostgreSQL has rolled it back because of concurrent
 * transactions. Throws other errors: after a lost connection, the outcome is unknown.
 */
export function withRetries<T>(transaction: () => Promise<T>): Promise<T> {
  return pRetry(transaction, {
    retries: RETRIES,
    minTimeout: FIRST_DELAY_MS,
    randomize: true,
    shouldRetry: ({ error }) => isConflict(error),
  });
}

/**
 * Returns whether a transaction was rolled back because of others: a serialization failure or a
 * deadlock (PostgreSQL, appendix A, 40001 and 40P01).
 */
export function isConflict(error: Error): boolean {
  return 'code' in error && (error.code === '40001' || error.code === '40P01');
}

/**
 * Deletes the rows whose time in this column is not after `until`, in batches. Returns their number.
 */
export function deleteUntil(
  unit: Unit,
  table: string,
  column: string,
  until: Date | string,
): Promise<number> {
  const db = unit.em.getKysely<Tables>();
  const old = db.selectFrom(table).select('ctid').where(column, '<=', until).limit(BATCH_SIZE);
  return inBatches(async () => {
    const found = db.deleteFrom(table).where('ctid', 'in', old);
    // Checked again for a row that has been changed meanwhile.
    const [deleted] = await run(unit, found.where(column, '<=', until));
    return Number(deleted?.numDeletedRows);
  });
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

/** Reads rows by single statements, or without them in the current transaction. */
export type Reader =
  | { em: EntityManager; statements?: Statements; request?: Abortable }
  | { statements: Statements; request?: Abortable };

/** Returns the rows of a query: committed data, or what the current transaction sees. */
export async function readRows<Row extends object>(
  ctx: Reader,
  query: Query<Row> | Statement,
  prepared = false,
): Promise<Row[]> {
  const statement = 'text' in query ? query : statementOf(query);
  if (isOutside(ctx)) return (await ctx.statements.read(statement, prepared, ctx.request)) as Row[];
  return (await runStatement<Row>(ctx, statement)).rows;
}

function isOutside(ctx: Reader): ctx is Extract<Reader, { statements: Statements }> {
  return ctx.statements !== undefined;
}

const texts = new LRUCache<string, string>({ max: 500 });

/**
 * Returns a statement whose text is built once per key, because building takes longer than sending.
 * Except for the values, the result of `make` must depend on the key alone.
 */
export function cachedStatement(
  key: string,
  values: readonly unknown[],
  make: () => Query,
): Statement {
  let text = texts.get(key);
  if (text === undefined) texts.set(key, (text = statementOf(make()).text));
  return { text, values };
}

/**
 * Returns the columns of an entity for a SELECT, each named as its property: of these properties, by
 * default all that are not lazy, and of the `others`.
 */
export function columnsOf(
  { em }: { em: EntityManager },
  entity: EntityClass<object>,
  others: readonly string[] = [],
  properties?: readonly string[],
): string[] {
  const { tableName, props } = em.getMetadata(entity);
  return props
    .filter(({ name, lazy }) => others.includes(name) || (properties?.includes(name) ?? !lazy))
    .map(({ name, fieldNames }) => `${tableName}.${fieldNames[0]} as ${String(name)}`);
}

/** Returns the column of a property. */
export function columnOf(
  { em }: { em: EntityManager },
  entity: EntityClass<object>,
  property: string,
): string {
  const { tableName, props } = em.getMetadata(entity);
  return `${tableName}.${props.find(({ name }) => name === property)?.fieldNames[0]}`;
}

/** Makes a row with the names of properties an entity to read only: no unit of work tracks it. */
export function entityOf<T extends object>(entity: EntityClass<T>, row: object): T {
  // The ORM's setters on the prototype would track each property: the row keeps its own.
  return Object.setPrototypeOf(row, entity.prototype as object) as T;
}
