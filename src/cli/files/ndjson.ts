import { DomainError, type FieldError } from '../../core/errors.ts';
import { parseExact } from '../../core/exact-json.ts';
import {
  columnNamed,
  FILE_COLUMNS,
  type FileRow,
} from '../../features/products/files/file-columns.ts';
import { BlankLimit } from './blank-limit.ts';
import { lineEndHint, type Line } from './line-reader.ts';

const NOT_OBJECT: FieldError = {
  field: '',
  type: 'json_invalid',
  message: 'The line is not a JSON object',
};
const UNKNOWN_COLUMN: FieldError = {
  field: '',
  type: 'unknown_column',
  message: `The row has an unknown column; columns are ${FILE_COLUMNS.join()}`,
};
const REPEATED_COLUMN: FieldError = {
  field: '',
  type: 'repeated_column',
  message: 'The row has a column twice',
};

const columns = new Set<string>(FILE_COLUMNS);

/**
 * Reads the rows of an NDJSON file, one per line. Ignores rows without a value, and the case of
 * names. Throws BAD_USER_INPUT for an empty file.
 */
export async function* ndjsonRows(
  lines: AsyncIterable<readonly Line[]>,
): AsyncGenerator<FileRow[]> {
  const limit = new BlankLimit();
  let isEmpty = true;
  for await (const batch of lines) {
    const rows = batch.flatMap((line) => rowOf(line) ?? []);
    isEmpty &&= rows.length === 0;
    yield rows;
    const tooBlank = limit.check(batch, rows);
    if (tooBlank) {
      yield [tooBlank];
      return;
    }
  }
  if (isEmpty) throw new DomainError('BAD_USER_INPUT', 'The file is empty');
}

function rowOf({ number: line, text, error }: Line): FileRow | undefined {
  if (error) return { line, error };
  if (text.trim() === '') return undefined;
  const values = objectIn(text);
  if (!values)
    return {
      line,
      error: { ...NOT_OBJECT, message: `${NOT_OBJECT.message}${lineEndHint(text)}` },
    };
  if (Object.values(values).every(isBlank)) return undefined;
  return Object.keys(values).every((name) => columns.has(name))
    ? { line, values }
    : renamed(line, values);
}

function renamed(line: number, values: Record<string, unknown>): FileRow {
  const names = Object.keys(values).map(columnNamed);
  if (names.includes(undefined)) return { line, error: UNKNOWN_COLUMN };
  if (new Set(names).size < names.length) return { line, error: REPEATED_COLUMN };
  return {
    line,
    values: Object.fromEntries(Object.values(values).map((value, index) => [names[index], value])),
  };
}

function isBlank(value: unknown): boolean {
  return value === null || (typeof value === 'string' && value.trim() === '');
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseExact(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
