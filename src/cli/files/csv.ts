import { parse } from 'csv-parse/sync';
import { DomainError, type FieldError } from '../../core/errors.ts';
import {
  columnNamed,
  FILE_COLUMNS,
  REQUIRED_COLUMNS,
  type FileRow,
} from '../../features/products/files/file-columns.ts';
import { unprotected, withoutProtection } from '../../features/products/files/spreadsheet-cells.ts';
import { FIELDS } from '../../features/products/product.columns.ts';
import type { ProductField } from '../../features/products/product.rules.ts';
import { printable } from '../printable.ts';
import { BlankLimit } from './blank-limit.ts';
import { lineEndHint, MAX_BYTES, NOT_READ, NOT_UTF8, type Line } from './line-reader.ts';

/** Maximum number of characters of a column name in an error. */
const MAX_NAME_LENGTH = 40;
/** A cell begins with a quotation mark, and no single one follows. */
const OPEN_CELL = /(?:^|,)\s*"(?:[^"]|"")*$/;
/** A cell begins with a quotation mark. */
const QUOTED_CELL = /(?:^|,)\s*"/;
const OTHER_DELIMITER = /[;\t]/;

const QUOTES: FieldError = {
  field: '',
  type: 'quotes',
  message: 'Unclosed or misplaced quotation mark',
};
const UNKNOWN_END: FieldError = { ...QUOTES, message: `${QUOTES.message}${NOT_READ}` };
const TOO_LONG: FieldError = {
  field: '',
  type: 'record_too_long',
  message: `A record of more than ${MAX_BYTES} characters begins here, perhaps because a quotation mark is not closed${NOT_READ}`,
};

/** The fields of a file and where they are, its columns without a name, and the number of columns. */
interface Layout {
  fields: { name: ProductField; index: number; isRequired: boolean; isProtected: boolean }[];
  unnamed: number[];
  width: number;
}

/**
 * Reads the rows of a CSV file (RFC 4180) whose first record names the columns, in any order and
 * case. Ignores blank records, blanks around cells, and empty cells without a column name. A cell
 * in quotation marks may contain line breaks. So a misplaced quotation mark may hide where a record
 * ends: the file is not read further, because the next row might be part of a cell. Throws
 * BAD_USER_INPUT for an empty file or invalid columns.
 */
export async function* csvRows(lines: AsyncIterable<readonly Line[]>): AsyncGenerator<FileRow[]> {
  const limit = new BlankLimit();
  let layout: Layout | undefined;
  for await (const batch of recordsIn(lines)) {
    const rows: FileRow[] = [];
    let isOver = false;
    for (const [record, cells] of cellsOf(batch)) {
      if (Array.isArray(cells) && cells.every((cell) => cell.trim() === '')) continue;
      if (layout) rows.push(rowOf(layout, record, cells));
      else layout = layoutOf(record, cells);
      isOver = cells === UNKNOWN_END;
      if (isOver) break;
    }
    yield rows;
    if (isOver) return;
    const tooBlank = limit.check(batch, rows);
    if (tooBlank) {
      yield [tooBlank];
      return;
    }
  }
  if (!layout) throw new DomainError('BAD_USER_INPUT', 'The file is empty');
}

/** Yields records as lines: those that share a cell with line breaks are one. */
async function* recordsIn(batches: AsyncIterable<readonly Line[]>): AsyncGenerator<Line[]> {
  let open: Line[] = [];
  let length = 0;
  for await (const batch of batches) {
    const records: Line[] = [];
    for (const line of batch) {
      if (open.length === 0 && !beginsOpen(line.text)) {
        records.push(line);
        continue;
      }
      length += line.text.length + 1;
      // A quotation mark within a cell is doubled, so an odd number ends the open cell.
      const isClosed = open.push(line) > 1 && hasOddQuotes(line.text);
      if (!isClosed && length <= MAX_BYTES) continue;
      records.push({ ...joined(open), ...(!isClosed && { error: TOO_LONG }) });
      if (!isClosed) {
        yield records;
        return;
      }
      [open, length] = [[], 0];
    }
    yield records;
  }
  if (open.length > 0) yield [joined(open)];
}

/** Returns whether a record of this line goes on in the next, because a cell is not closed. */
function beginsOpen(line: string): boolean {
  return hasOddQuotes(line) && OPEN_CELL.test(line);
}

function hasOddQuotes(text: string): boolean {
  let isOdd = false;
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at + 1)) isOdd = !isOdd;
  return isOdd;
}

function joined(lines: readonly Line[]): Line {
  const error = lines.find((line) => line.error)?.error;
  return {
    number: lines[0]?.number ?? 0,
    text: lines.map(({ text }) => text).join('\n'),
    ...(error && { error }),
  };
}

function layoutOf({ number, text }: Line, names: string[] | FieldError): Layout {
  if (!Array.isArray(names))
    throw new DomainError('BAD_USER_INPUT', `Line ${number}: ${names.message}`);
  const width = names.findLastIndex((name) => name.trim() !== '') + 1;
  const given = names.slice(0, width).map((name) => name.trim());
  const header = given.map((name) => columnNamed(withoutProtection(name)));
  const missing = REQUIRED_COLUMNS.filter((name) => !header.includes(name));
  const unknown = given.filter((name, index) => name !== '' && header[index] === undefined);
  const repeated = header.filter(
    (name, index) => name !== undefined && header.indexOf(name) !== index,
  );
  const problems = [
    ...problemsOf('lacks', missing),
    ...problemsOf('has an unknown column', unknown),
    ...problemsOf('has twice', [...new Set(repeated)]),
  ];
  if (problems.length > 0)
    throw new DomainError(
      'BAD_USER_INPUT',
      `The header on line ${number} ${problems.join(', and ')}; columns are ${FILE_COLUMNS.join()}${hintFor(text, names)}`,
    );
  return {
    fields: FIELDS.filter((name) => header.includes(name)).map((name) => {
      const index = header.indexOf(name);
      return {
        name,
        index,
        isRequired: REQUIRED_COLUMNS.includes(name),
        isProtected: given[index] !== withoutProtection(given[index] ?? ''),
      };
    }),
    unnamed: given.flatMap((name, index) => (name === '' ? [index] : [])),
    width,
  };
}

function problemsOf(problem: string, names: readonly (string | undefined)[]): string[] {
  return names.length === 0
    ? []
    : [
        `${problem} ${names.map((name = '') => JSON.stringify(printable(name).slice(0, MAX_NAME_LENGTH))).join(', ')}`,
      ];
}

function rowOf(
  layout: Layout,
  { number: line, text }: Line,
  cells: string[] | FieldError,
): FileRow {
  if (!Array.isArray(cells)) return { line, error: cells };
  const { fields, unnamed, width } = layout;
  const count =
    cells.length > width
      ? Math.max(width, cells.findLastIndex((cell) => cell.trim() !== '') + 1)
      : cells.length;
  if (count !== width) {
    const message = `The row has ${count} cells, but the header has ${width}${hintFor(text, cells)}`;
    return { line, error: { field: '', type: 'cells', message } };
  }
  if (unnamed.some((index) => cells[index]?.trim() !== '')) {
    const message = 'The row has a cell in a column without a name';
    return { line, error: { field: '', type: 'cells', message } };
  }
  return {
    line,
    values: Object.fromEntries(
      fields.map(({ name, index, isRequired, isProtected }) => {
        const cell = cells[index]?.trim() ?? '';
        if (cell === '' && !isRequired) return [name, null];
        return [name, isProtected ? unprotected(name, cell) : cell];
      }),
    ),
  };
}

/** Returns the likely cause of a wrong number of cells, or ''. */
function hintFor(text: string, cells: readonly string[]): string {
  if (cells.length === 1 && OTHER_DELIMITER.test(text))
    return '; separate cells by commas, not by semicolons or tabs';
  const [whole = '', fraction = ''] = cells.slice(-2);
  if (/^\d+$/.test(whole) && /^\d\d$/.test(fraction))
    return '; write a price with a decimal point, not a comma';
  return lineEndHint(text);
}

// Parses all records at once, which is faster; if one is invalid, each record separately.
function cellsOf(batch: readonly Line[]): [Line, string[] | FieldError][] {
  const records = batch.filter(({ text, error }) => error !== undefined || text.trim() !== '');
  const texts = records.flatMap(({ text, error }) => (error ? [] : [text]));
  const parsed = parseOrUndefined(texts.join('\n'));
  const cells = (parsed?.length === texts.length ? parsed : texts.map(parsedAlone)).values();
  return records.map((record) => {
    if (!record.error) return [record, cells.next().value ?? QUOTES];
    const hidesEnd = record.error === NOT_UTF8 && parsedAlone(record.text) === UNKNOWN_END;
    return [record, hidesEnd ? UNKNOWN_END : record.error];
  });
}

function parsedAlone(text: string): string[] | FieldError {
  const [cells] = parseOrUndefined(text) ?? [];
  if (cells) return cells;
  // In a cell that does not begin with one, a quotation mark cannot hide a line break. One line that
  // is not closed is the last line.
  const isLastLine = !text.includes('\n') && beginsOpen(text);
  return QUOTED_CELL.test(text) && !isLastLine ? UNKNOWN_END : QUOTES;
}

function parseOrUndefined(text: string): string[][] | undefined {
  try {
    return parse(text, { recordDelimiter: '\n', relaxColumnCount: true, trim: true });
  } catch {
    return undefined;
  }
}
