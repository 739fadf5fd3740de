import { parse } from 'csv-parse/sync';
import { DomainError, type FieldError } from '../../core/errors.ts';
import {
  FILE_COLUMNS,
  REQUIRED_COLUMNS,
  type FileRow,
} from '../../features/products/files/file-columns.ts';
import { FIELDS } from '../../features/products/product.columns.ts';
import { printable } from '../printable.ts';
import { withoutByteOrderMark, type Line } from './line-reader.ts';

/** Maximum number of characters of a column name in an error. */
const MAX_NAME_LENGTH = 40;

const QUOTES: FieldError = {
  field: '',
  type: 'quotes',
  message: 'Unclosed or misplaced quotation mark',
};

/**
 * Reads the rows of a CSV file (RFC 4180) whose first line names the columns, in any order. A row
 * is one line, because no cell of a product contains a line break. So an unclosed quotation mark
 * affects no other row. Throws BAD_USER_INPUT for an empty file or invalid columns.
 */
export async function* csvRows(lines: AsyncIterable<readonly Line[]>): AsyncGenerator<FileRow[]> {
  let header: readonly string[] | undefined;
  for await (const batch of lines) {
    const nonEmpty = batch.filter((line) => !('text' in line) || line.text !== '');
    header ??= nonEmpty[0] && headerOf(nonEmpty.shift());
    if (header) yield rowsOf(header, nonEmpty);
  }
  if (!header) throw new DomainError('BAD_USER_INPUT', 'The file is empty');
}

function headerOf(line: Line | undefined): string[] {
  if (!line || 'error' in line)
    throw new DomainError('BAD_USER_INPUT', `Line ${line?.number}: ${line?.error.message}`);
  const [names] = cellsOf([withoutByteOrderMark(line.text)]);
  if (!names) throw new DomainError('BAD_USER_INPUT', `Line ${line.number}: ${QUOTES.message}`);
  const header = names.map((name) => name.trim());
  const missing = REQUIRED_COLUMNS.filter((name) => !header.includes(name));
  const unknown = header.filter((name) => !FILE_COLUMNS.some((known) => known === name));
  const duplicates = header.filter((name, index) => header.indexOf(name) !== index);
  const problems = [
    ...problemsOf('lacks', missing),
    ...problemsOf('has an unknown column', unknown),
    ...problemsOf('has twice', [...new Set(duplicates)]),
  ];
  if (problems.length === 0) return header;
  throw new DomainError(
    'BAD_USER_INPUT',
    `The header on line ${line.number} ${problems.join(', and ')}; columns are ${FILE_COLUMNS.join()}`,
  );
}

function problemsOf(problem: string, names: readonly string[]): string[] {
  return names.length === 0
    ? []
    : [
        `${problem} ${names.map((name) => JSON.stringify(printable(name).slice(0, MAX_NAME_LENGTH))).join(', ')}`,
      ];
}

function rowsOf(header: readonly string[], lines: readonly Line[]): FileRow[] {
  const columns = FIELDS.filter((name) => header.includes(name)).map((name) => ({
    name,
    index: header.indexOf(name),
    isRequired: REQUIRED_COLUMNS.includes(name),
  }));
  const cells = cellsOf(lines.flatMap((line) => ('text' in line ? [line.text] : []))).values();
  return lines.map((line): FileRow => {
    if ('error' in line) return { line: line.number, error: line.error };
    const row = cells.next().value;
    if (!row) return { line: line.number, error: QUOTES };
    if (row.length === header.length)
      return {
        line: line.number,
        values: Object.fromEntries(
          columns.map(({ name, index, isRequired }) => [
            name,
            row[index] === '' && !isRequired ? null : row[index],
          ]),
        ),
      };
    const message = `The row has ${row.length} cells, but the header has ${header.length}`;
    return { line: line.number, error: { field: '', type: 'cells', message } };
  });
}

// Parses all lines at once, which is faster; if one is invalid, each line separately.
function cellsOf(lines: readonly string[]): (string[] | undefined)[] {
  const rows = parseOrUndefined(lines.join('\n'));
  return rows?.length === lines.length ? rows : lines.map((line) => parseOrUndefined(line)?.[0]);
}

function parseOrUndefined(text: string): string[][] | undefined {
  try {
    return parse(text, { recordDelimiter: '\n', relaxColumnCount: true });
  } catch {
    return undefined;
  }
}
