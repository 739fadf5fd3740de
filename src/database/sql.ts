import type { Abortable } from '../core/abort.ts';

/** Text of a statement, and the values of its parameters in order. */
export interface Statement {
  text: string;
  values: readonly unknown[];
}

/** A row by the names of its columns. */
export type Row = Record<string, unknown>;

/** Runs single statements, each in its own transaction. */
export interface Statements {
  /**
   * Reads. A `prepared` statement must be fast for all values: it is prepared once per connection
   * and shares a connection with others. Statements on the pool are cancelled with the request.
   */
  read(statement: Statement, prepared?: boolean, request?: Abortable): Promise<Row[]>;
  /** Number of commits of this process. Data from before the last commit may be outdated. */
  commits: number;
}

/**
 * Names of the writes that each connection prepares, by text. Few, because each costs memory on every
 * connection.
 */
export const preparedWrites = new Map<string, string>();

/** Returns whether this unique constraint rejected a row (PostgreSQL, appendix A, 23505). */
export function isUniqueViolation(error: unknown, constraint: string): boolean {
  const { code, constraint: violated } = Object(error) as Record<string, unknown>;
  return code === '23505' && violated === constraint;
}

/** Parses a timestamp such as `2026-11-21 08:30:00.123+00`. Our database sessions use UTC. */
export function readTime(text: string): Date {
  // JavaScript parses ISO 8601 considerably faster than other formats.
  return new Date(text.endsWith('+00') ? `${text.slice(0, 10)}T${text.slice(11, -3)}Z` : text);
}
