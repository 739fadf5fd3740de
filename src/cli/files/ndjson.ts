import { DomainError, type FieldError } from '../../core/errors.ts';
import { parseExact } from '../../core/exact-json.ts';
import { FILE_COLUMNS, type FileRow } from '../../features/products/files/file-columns.ts';
import { withoutByteOrderMark, type Line } from './line-reader.ts';

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

const columns = new Set<string>(FILE_COLUMNS);

/** Reads the rows of an NDJSON file, one per line. Throws BAD_USER_INPUT for an empty file. */
export async function* ndjsonRows(
  lines: AsyncIterable<readonly Line[]>,
): AsyncGenerator<FileRow[]> {
  let isEmpty = true;
  for await (const batch of lines) {
    const rows = batch.flatMap((line) => rowOf(line) ?? []);
    isEmpty &&= rows.length === 0;
    yield rows;
  }
  if (isEmpty) throw new DomainError('BAD_USER_INPUT', 'The file is empty');
}

function rowOf(line: Line): FileRow | undefined {
  if ('error' in line) return { line: line.number, error: line.error };
  const text = line.number === 1 ? withoutByteOrderMark(line.text) : line.text;
  if (text.trim() === '') return undefined;
  const values = objectIn(text);
  if (!values) return { line: line.number, error: NOT_OBJECT };
  return Object.keys(values).every((name) => columns.has(name))
    ? { line: line.number, values }
    : { line: line.number, error: UNKNOWN_COLUMN };
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
