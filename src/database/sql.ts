import type { EntityManager } from '@mikro-orm/postgresql';
import { CompiledQuery, type AbortableQueryOptions } from 'kysely';
import { LRUCache } from 'lru-cache';
import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import type { Abortable } from '../core/abort.ts';
import { withRetries } from './retry.ts';

export { empty, join, raw, sql, type Sql };

/** Value from the driver: PostgreSQL's text or null; inside a transaction also a parsed value. */
export type Cell = unknown;

/** Text of a statement, and the values of its parameters in order. */
export type Statement = Pick<Sql, 'text' | 'values'>;

/** Runs single statements, each in its own transaction. A row is a list of cells. */
export interface Statements {
  /**
   * Reads. A `prepared` statement must be fast for all values: it is prepared once per connection
   * and shares a connection with others. Statements on the pool are cancelled with the request.
   */
  read(statement: Statement, prepared?: boolean, request?: Abortable): Promise<Cell[][]>;
  /** Writes, by a statement that is prepared once per connection. */
  write(statement: Statement, request?: Abortable): Promise<Cell[][]>;
  /** Number of commits of this process. Data from before the last commit may be outdated. */
  commits: number;
}

/**
 * Runs a statement in the current transaction, or alone. Returns rows by column name. Cancelled
 * with the unit of work's request.
 */
export async function execute(
  em: EntityManager,
  { text, values }: Statement,
): Promise<{ rows: Record<string, unknown>[]; affected: number }> {
  const query = CompiledQuery.raw(text, values);
  const run = () => em.getKysely().executeQuery<Record<string, unknown>>(query, abortOptionsOf(em));
  // Alone, the statement is a whole transaction.
  const { rows, numAffectedRows } = await (em.isInTransaction() ? run() : withRetries(run));
  return { rows, affected: Number(numAffectedRows ?? 0) };
}

/** Returns the abort options of the ORM's unit of work or statement, if it has any. */
export function abortOptionsOf(holder: object = {}): AbortableQueryOptions | undefined {
  const { signal, inflightQueryAbortStrategy } = holder as AbortableQueryOptions;
  return signal && { signal, inflightQueryAbortStrategy };
}

/**
 * Returns an integer as part of the statement's text. For a LIMIT parameter the planner assumes a
 * tenth of the table, and plans again each time because of that cost.
 */
export function literal(value: number): Sql {
  if (!Number.isSafeInteger(value)) throw new TypeError('A literal must be a safe integer');
  return raw(String(value));
}

/** Returns whether this unique constraint rejected a row (PostgreSQL, appendix A, 23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    error.code === '23505' &&
    'constraint' in error &&
    error.constraint === constraint
  );
}

const texts = new LRUCache<string, string>({ max: 500 });

/**
 * Returns a statement whose text is built once per key, because building takes longer than sending.
 * Except for the values, the result of `make` must depend on the key alone.
 */
export function cachedStatement(key: string, values: unknown[], make: () => Sql): Statement {
  const known = texts.get(key);
  if (known !== undefined) return { text: known, values };
  const { text } = make();
  texts.set(key, text);
  return { text, values };
}

/** Parses a timestamp such as `2026-11-21 08:30:00.123+00`. Our database sessions use UTC. */
export function readTime(cell: Cell): Date {
  if (cell instanceof Date) return cell;
  // JavaScript parses ISO 8601 considerably faster than other formats.
  const text = cell as string;
  return new Date(text.endsWith('+00') ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text);
}

/** Returns the value of a `json` or `jsonb` cell that is not a string itself. */
export function readJson(cell: Cell): unknown {
  return typeof cell === 'string' ? JSON.parse(cell) : cell;
}

/** Returns a quoted name: of a table or column, or of a table and its column. */
export function identifier(...parts: readonly string[]): Sql {
  return raw(parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.'));
}
