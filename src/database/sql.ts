import type { EntityManager } from '@mikro-orm/postgresql';
import { CompiledQuery, type AbortableQueryOptions } from 'kysely';
import { LRUCache } from 'lru-cache';
import sql, { empty, join, raw, type Sql } from 'sql-template-tag';
import { retried } from './retry.ts';

export { empty, join, raw, sql, type Sql };

/** A value of a row as the driver hands it over: text in PostgreSQL's form, or null; inside a transaction also what the driver made of it. */
export type Cell = unknown;

/** A statement as it is sent: its text, and the values of its parameters in their order. */
export type Statement = Pick<Sql, 'text' | 'values'>;

/** What may be given up before it is done. Lighter than an AbortSignal, for nearly none ever is. */
export interface Abortable {
  readonly isGivenUp: boolean;
  /** Called when the database begins with it. */
  begin?(): void;
  /** What it is a part of. */
  readonly whole?: Abortable | undefined;
  /** Has this called when it is given up; at once, if it has been. */
  onGiveUp(end: () => void): void;
  /** Has it called no more. */
  offGiveUp(end: () => void): void;
}

/** Runs single statements, each a transaction of its own. Rows are their columns' cells, in order. */
export interface Statements {
  /**
   * Reads. A `hot` statement is one that is quick whatever its values are: it is prepared once on each connection, and
   * shares one with others. What takes long is cancelled when the request is given up.
   */
  read(statement: Statement, hot?: boolean, request?: Abortable): Promise<Cell[][]>;
  /** Writes, by a statement that is prepared once on each connection. */
  write(statement: Statement, request?: Abortable): Promise<Cell[][]>;
  /** How often this process has committed: what was read before the last commit may be out of date. */
  commits: number;
}

/** Runs a statement in the transaction at hand, or by itself. Rows by the names of their columns. Cancelled with the unit of work's request. */
export async function execute(
  em: EntityManager,
  { text, values }: Statement,
): Promise<{ rows: Record<string, unknown>[]; affected: number }> {
  const query = CompiledQuery.raw(text, values);
  const run = () => em.getKysely().executeQuery<Record<string, unknown>>(query, abortOptionsOf(em));
  // By itself, it is a transaction of its own.
  const { rows, numAffectedRows } = await (em.isInTransaction() ? run() : retried(run));
  return { rows, affected: Number(numAffectedRows ?? 0) };
}

/** What aborts a statement, as the ORM puts it on its units of work and beside its own statements; undefined where nothing does. */
export function abortOptionsOf(holder: object = {}): AbortableQueryOptions | undefined {
  const { signal, inflightQueryAbortStrategy } = holder as AbortableQueryOptions;
  return signal && { signal, inflightQueryAbortStrategy };
}

/**
 * A whole number that stands in the statement itself. Of a LIMIT whose value is left open, the planner takes a tenth of the table
 * to be read, and plans anew each time because that looks dear.
 */
export function literal(value: number): Sql {
  if (!Number.isSafeInteger(value)) throw new TypeError('no whole number');
  return raw(String(value));
}

/** Whether PostgreSQL refused a row because there is one of the same unique values (its appendix A, 23505). */
export function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '23505';
}

const texts = new LRUCache<string, string>({ max: 500 });

/**
 * A statement whose text is put together once for its key, as that takes longer than sending it. What `make` makes has to
 * depend on the key alone, but for its values.
 */
export function kept(key: string, values: unknown[], make: () => Sql): Statement {
  const known = texts.get(key);
  if (known !== undefined) return { text: known, values };
  const { text } = make();
  texts.set(key, text);
  return { text, values };
}

/** The instant that PostgreSQL writes, such as `2026-11-21 08:30:00.123+00`: the sessions of our connections are in UTC. */
export function readTime(cell: Cell): Date {
  if (cell instanceof Date) return cell;
  // In the form of ISO 8601, which JavaScript reads a good deal quicker than others.
  const text = cell as string;
  return new Date(text.endsWith('+00') ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text);
}

/** The value of a `json` or `jsonb` that is no text itself. */
export function readJson(cell: Cell): unknown {
  return typeof cell === 'string' ? JSON.parse(cell) : cell;
}

/** A name of a table or column, in quotation marks; with the table's, where both are given. */
export function identifier(...parts: readonly string[]): Sql {
  return raw(parts.map((part) => `"${part.replaceAll('"', '""')}"`).join('.'));
}
