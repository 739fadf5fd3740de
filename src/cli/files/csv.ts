import { parse } from 'csv-parse/sync';
import { DomainError, type FieldError } from '../../core/errors.ts';
import { COLUMNS, REQUIRED_COLUMNS, type FileRow } from '../../features/products/files/file-columns.ts';
import { printable } from '../printable.ts';
import { withoutMark, type Line } from './line-reader.ts';

/** A name of a column in a refusal is cut after so many letters. */
const MAX_NAME = 40;

const QUOTES: FieldError = { field: '', type: 'quotes', message: 'A quotation mark is not closed, or stands where none may be' };

/**
 * The rows of a CSV file (RFC 4180) whose first line names the columns, in any order. No cell of a product has a line break in it, so that a row is a line,
 * and a quotation mark that is not closed spoils no other. Throws BAD_USER_INPUT for a file without the columns that it has to have.
 */
export async function* csvRows(lines: AsyncIterable<readonly Line[]>): AsyncGenerator<FileRow[]> {
  let header: readonly string[] | undefined;
  for await (const some of lines) {
    const full = some.filter((line) => !('text' in line) || line.text !== '');
    header ??= full[0] && headerOf(full.shift());
    if (header) yield rowsOf(header, full);
  }
  if (!header) throw new DomainError('BAD_USER_INPUT', 'The file is empty');
}

function headerOf(line: Line | undefined): string[] {
  if (!line || 'refusal' in line) throw new DomainError('BAD_USER_INPUT', `Line ${line?.number}: ${line?.refusal.message}`);
  const [names] = cellsOf([withoutMark(line.text)]);
  if (!names) throw new DomainError('BAD_USER_INPUT', `Line ${line.number}: ${QUOTES.message}`);
  const header = names.map((name) => name.trim());
  const missing = REQUIRED_COLUMNS.filter((name) => !header.includes(name));
  const unknown = header.filter((name) => !COLUMNS.some((known) => known === name));
  const twice = header.filter((name, place) => header.indexOf(name) !== place);
  const problems = [...told('lacks', missing), ...told('has an unknown column', unknown), ...told('has twice', [...new Set(twice)])];
  if (problems.length === 0) return header;
  throw new DomainError('BAD_USER_INPUT', `The header on line ${line.number} ${problems.join(', and ')}; columns are ${COLUMNS.join()}`);
}

function told(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${what} ${names.map((name) => JSON.stringify(printable(name).slice(0, MAX_NAME))).join(', ')}`];
}

function rowsOf(header: readonly string[], lines: readonly Line[]): FileRow[] {
  const places = REQUIRED_COLUMNS.map((name) => [name, header.indexOf(name)] as const);
  const cells = cellsOf(lines.flatMap((line) => ('text' in line ? [line.text] : []))).values();
  return lines.map((line): FileRow => {
    if ('refusal' in line) return { line: line.number, refusal: line.refusal };
    const row = cells.next().value;
    if (!row) return { line: line.number, refusal: QUOTES };
    if (row.length === header.length)
      return { line: line.number, values: Object.fromEntries(places.map(([name, place]) => [name, row[place]])) };
    const message = `The row has ${row.length} cells, the header ${header.length}`;
    return { line: line.number, refusal: { field: '', type: 'cells', message } };
  });
}

// Many at once, which is quicker; where one of them is wrong, each by itself.
function cellsOf(lines: readonly string[]): (string[] | undefined)[] {
  const rows = parsed(lines.join('\n'));
  return rows?.length === lines.length ? rows : lines.map((line) => parsed(line)?.[0]);
}

function parsed(text: string): string[][] | undefined {
  try {
    return parse(text, { recordDelimiter: '\n', relaxColumnCount: true });
  } catch {
    return undefined;
  }
}
