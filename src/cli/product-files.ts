import { createReadStream, createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { pipeline as complete } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { parse, type Info } from 'csv-parse';
import { DomainError } from '../core/errors.ts';
import { parseExact } from '../core/exact-json.ts';
import type { FileRow, Format } from '../features/products/files/file-columns.ts';
import { REQUIRED_FIELDS } from '../features/products/product.columns.ts';
import type { CommandContext } from './command-context.ts';

/** Path of standard input and standard output. */
export const STANDARD = '-';

/** Maximum number of characters of a CSV record: a quotation mark that is not closed ends there. */
const MAX_RECORD = 64 * 1024;

const READERS: Record<Format, (text: AsyncIterable<string>) => AsyncIterable<FileRow>> = {
  csv: csvRows,
  ndjson: ndjsonRows,
};

/**
 * Reads the rows of a file or of standard input. A name that ends with `.gz` means gzip. Throws if
 * the file cannot be read, is not UTF-8, or is no CSV file with the columns of a product.
 */
export function readRows(
  { stdin }: CommandContext,
  path: string,
  format: Format,
): AsyncIterable<FileRow> {
  const file = path === STANDARD ? stdin : createReadStream(path);
  // The reader of the pipeline gets its errors, so the callback ignores them.
  const bytes = path.endsWith('.gz') ? pipeline(file, createGunzip(), () => undefined) : file;
  return READERS[format](decoded(bytes as AsyncIterable<Buffer>));
}

/**
 * Writes text to a file, by gzip if its name ends with `.gz`, or to standard output, where a closed
 * pipe is no error. A file appears when it is complete.
 */
export async function writeText(
  { stdout }: CommandContext,
  path: string,
  text: AsyncIterable<string>,
): Promise<void> {
  if (path === STANDARD) return complete(text, stdout, { end: false }).catch(ignoreClosedPipe);
  const part = `${path}.part`;
  const file = createWriteStream(part);
  await (path.endsWith('.gz') ? complete(text, createGzip(), file) : complete(text, file));
  await rename(part, path);
}

// Removes a byte order mark.
async function* decoded(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  for await (const chunk of bytes) yield decoder.decode(chunk, { stream: true });
  yield decoder.decode();
}

async function* csvRows(text: AsyncIterable<string>): AsyncGenerator<FileRow> {
  const options = {
    info: true,
    trim: true,
    relaxColumnCount: true,
    skipRecordsWithEmptyValues: true,
    maxRecordSize: MAX_RECORD,
  };
  const records = pipeline(text, parse(options), () => undefined) as AsyncIterable<{
    record: string[];
    info: Info;
  }>;
  let header: string[] | undefined;
  for await (const { record, info } of records) {
    if (header) yield rowOf(header, record, info.lines);
    else header = headerOf(record);
  }
}

function headerOf(record: readonly string[]): string[] {
  const header = record.map((name) => name.toLowerCase());
  const missing = REQUIRED_FIELDS.filter((field) => !header.includes(field));
  if (missing.length === 0) return header;
  throw new DomainError('BAD_USER_INPUT', `The header lacks the columns ${missing.join(', ')}`);
}

function rowOf(header: readonly string[], record: readonly string[], line: number): FileRow {
  if (record.length === header.length) {
    const cells = header.map((name, index) => [name, record[index]] as const);
    return { line, values: Object.fromEntries(cells.filter(isValue)) };
  }
  const message = `The row has ${record.length} cells, but the header has ${header.length}`;
  return { line, error: { field: '', type: 'cells', message } };
}

// An empty cell is no value, unless the field needs one.
function isValue([name, cell]: readonly [string, string | undefined]): boolean {
  return cell !== '' || REQUIRED_FIELDS.some((field) => field === name);
}

async function* ndjsonRows(text: AsyncIterable<string>): AsyncGenerator<FileRow> {
  let line = 0;
  for await (const row of linesOf(text)) {
    line++;
    if (row.trim() !== '') yield { line, ...objectIn(row) };
  }
}

async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of text) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    yield* lines;
  }
  if (rest !== '') yield rest;
}

function objectIn(text: string): Pick<FileRow, 'values' | 'error'> {
  try {
    const values = parseExact(text);
    if (typeof values === 'object' && values !== null)
      return { values: values as Record<string, unknown> };
  } catch {
    // The same error as for other values.
  }
  const message = 'The line is not a JSON object';
  return { error: { field: '', type: 'json_invalid', message } };
}

function ignoreClosedPipe(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'EPIPE')) throw error;
}
