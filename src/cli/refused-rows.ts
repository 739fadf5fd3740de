import { appendFileSync, closeSync, openSync } from 'node:fs';
import { DomainError } from '../core/errors.ts';
import { fileErrorCode } from '../core/file-error.ts';
import type { RowProblem } from '../features/products/files/file-columns.ts';
import type { CommandContext } from './command-context.ts';

/** Maximum number of rows that are printed without an error file. */
const MAX_PRINTED = 20;

/** Output for the rejected rows of an import. */
export interface RefusedRows {
  write(problems: readonly RowProblem[]): void;
  close(): void;
}

/**
 * Writes rejected rows to a file as NDJSON; without a file, the first ones to standard error.
 * Throws BAD_USER_INPUT if the file cannot be written.
 */
export function openRefusedRows(context: CommandContext, path: string | undefined): RefusedRows {
  return path === undefined ? toStandardError(context) : toFile(path);
}

function toStandardError({ printError }: CommandContext): RefusedRows {
  let count = 0;
  return {
    write(problems) {
      for (const { line, column, message } of problems.slice(0, Math.max(0, MAX_PRINTED - count))) {
        printError(`Line ${line}: ${column === null ? '' : `${column}: `}${message}`);
      }
      count += problems.length;
    },
    close() {
      if (count > MAX_PRINTED)
        printError(`And ${count - MAX_PRINTED} more. Use --errors FILE to get them all.`);
    },
  };
}

// Writes synchronously, so that only the rows of one batch are in memory.
function toFile(path: string): RefusedRows {
  const attempt = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw new DomainError(
        'BAD_USER_INPUT',
        `${path} cannot be written (${fileErrorCode(error)})`,
      );
    }
  };
  const file = attempt(() => openSync(path, 'w'));
  return {
    write: (problems) =>
      attempt(() =>
        appendFileSync(file, problems.map((problem) => `${JSON.stringify(problem)}\n`).join('')),
      ),
    close: () => closeSync(file),
  };
}
