import { DomainError, type FieldError } from '../../core/errors.ts';
import { parseExact } from '../../core/exact-json.ts';
import { COLUMNS, type FileRow } from '../../features/products/files/file-columns.ts';
import { withoutMark, type Line } from './line-reader.ts';

const NO_OBJECT: FieldError = { field: '', type: 'json_invalid', message: 'The line is no JSON object' };
const UNKNOWN: FieldError = { field: '', type: 'unknown_column', message: `The row has an unknown column; columns are ${COLUMNS.join()}` };

const columns = new Set<string>(COLUMNS);

/** The rows of an NDJSON file: a JSON object on each line. Throws BAD_USER_INPUT for a file without any. */
export async function* ndjsonRows(lines: AsyncIterable<readonly Line[]>): AsyncGenerator<FileRow[]> {
  let isEmpty = true;
  for await (const some of lines) {
    const rows = some.flatMap((line) => rowOf(line) ?? []);
    isEmpty &&= rows.length === 0;
    yield rows;
  }
  if (isEmpty) throw new DomainError('BAD_USER_INPUT', 'The file is empty');
}

function rowOf(line: Line): FileRow | undefined {
  if ('refusal' in line) return { line: line.number, refusal: line.refusal };
  const text = line.number === 1 ? withoutMark(line.text) : line.text;
  if (text.trim() === '') return undefined;
  const values = objectIn(text);
  if (!values) return { line: line.number, refusal: NO_OBJECT };
  return Object.keys(values).every((name) => columns.has(name)) ? { line: line.number, values } : { line: line.number, refusal: UNKNOWN };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value = parseExact(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
