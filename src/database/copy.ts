import type { Cell, Statement } from './sql.ts';

/** A transaction that writes many rows at a time. */
export interface CopyTransaction {
  /** Runs a statement and returns its rows. */
  run(statement: Statement): Promise<Cell[][]>;
  /**
   * Creates a temporary table with these columns (name: type) and inserts the rows, whose cells are
   * in the order of the columns. The end of the transaction drops the table.
   */
  stage(
    table: string,
    columns: Readonly<Record<string, string>>,
    rows: readonly (readonly (string | null)[])[],
  ): Promise<void>;
}

/** Runs the work in one transaction. Retries it after a conflict with others (retry.ts). */
export type RunCopyTransaction = <T>(
  work: (transaction: CopyTransaction) => Promise<T>,
) => Promise<T>;
