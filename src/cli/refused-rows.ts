import { appendFileSync, closeSync, openSync } from 'node:fs';
import { DomainError } from '../core/errors.ts';
import { refusalOfFile } from '../core/file-error.ts';
import type { RowProblem } from '../features/products/files/file-columns.ts';
import type { CommandContext } from './command-context.ts';

/** How many are printed where no file takes them. */
const MAX_PRINTED = 20;

/** Where the rows of a file that are refused are told. */
export interface RefusedRows {
  tell(problems: readonly RowProblem[]): void;
  end(): void;
}

/** Tells them in a file, a JSON object on each line; without one, the first of them on standard error. Throws BAD_USER_INPUT where that cannot be written. */
export function openRefusedRows(context: CommandContext, path: string | undefined): RefusedRows {
  return path === undefined ? printed(context) : written(path);
}

function printed({ printError }: CommandContext): RefusedRows {
  let count = 0;
  return {
    tell(problems) {
      for (const { line, column, message } of problems.slice(0, Math.max(0, MAX_PRINTED - count))) {
        printError(`Line ${line}: ${column === null ? '' : `${column}: `}${message}`);
      }
      count += problems.length;
    },
    end() {
      if (count > MAX_PRINTED) printError(`And ${count - MAX_PRINTED} more; --errors FILE keeps them all.`);
    },
  };
}

// At once, so that no more of them are held than there are in a piece of the file.
function written(path: string): RefusedRows {
  const attempt = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw new DomainError('BAD_USER_INPUT', `${path} cannot be written (${refusalOfFile(error)})`);
    }
  };
  const file = attempt(() => openSync(path, 'w'));
  return {
    tell: (problems) => attempt(() => appendFileSync(file, problems.map((problem) => `${JSON.stringify(problem)}\n`).join(''))),
    end: () => closeSync(file),
  };
}
