import type { Cell, Statement } from './sql.ts';

/** A transaction that takes many rows at a time. */
export interface Bulk {
  /** Runs a statement and answers its rows. */
  run(statement: Statement): Promise<Cell[][]>;
  /**
   * Makes a table with these columns, each of the type beside it, and puts the rows into it, cells in the order of the columns. Nobody else
   * sees the table, and it is gone with the transaction.
   */
  stage(table: string, columns: Readonly<Record<string, string>>, rows: readonly (readonly string[])[]): Promise<void>;
}

/** Does the work in one transaction, and again where PostgreSQL has undone it because of others (retry.ts). */
export type InBulk = <T>(work: (bulk: Bulk) => Promise<T>) => Promise<T>;
