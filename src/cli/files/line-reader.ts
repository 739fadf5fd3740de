import { isUtf8 } from 'node:buffer';
import type { FieldError } from '../../core/errors.ts';

/** A line of a file without its end, by its number from 1; or why it cannot be read. */
export type Line = { number: number } & ({ text: string } | { refusal: FieldError });

/** No product takes as much, however it is written. */
const MAX_BYTES = 64 * 1024;
const NEWLINE = 10;
const BYTE_ORDER_MARK = /^\ufeff/;

const TOO_LONG: FieldError = { field: '', type: 'line_too_long', message: `The line has more than ${MAX_BYTES} bytes` };
const NOT_UTF8: FieldError = { field: '', type: 'not_utf8', message: 'The line is not UTF-8' };

/** The lines of a text in UTF-8, as many at a time as a piece ends. Of a line that is too long, no more than that is ever held. */
export async function* readLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let count = 0;
  let rest: Buffer = Buffer.alloc(0);
  const linesIn = (whole: Buffer): Line[] => {
    const lines = split(whole).map((line, index): Line => ({ number: count + index + 1, ...line }));
    count += lines.length;
    return lines;
  };
  for await (const piece of bytes) {
    const end = piece.lastIndexOf(NEWLINE);
    if (end < 0) {
      if (rest.length <= MAX_BYTES) rest = Buffer.concat([rest, piece]).subarray(0, MAX_BYTES + 1);
      continue;
    }
    yield linesIn(Buffer.concat([rest, piece.subarray(0, end)]));
    rest = piece.subarray(end + 1);
  }
  if (rest.length > 0) yield linesIn(rest);
}

type Read = { text: string } | { refusal: FieldError };

function split(whole: Buffer): Read[] {
  if (isUtf8(whole)) return whole.toString().split('\n').map(readText);
  const lines: Read[] = [];
  for (let start = 0; start <= whole.length;) {
    const found = whole.indexOf(NEWLINE, start);
    const end = found < 0 ? whole.length : found;
    lines.push(readBytes(whole.subarray(start, end)));
    start = end + 1;
  }
  return lines;
}

function readText(line: string): Read {
  // A letter takes three bytes at most for each of its units.
  if (line.length > MAX_BYTES / 3 && Buffer.byteLength(line) > MAX_BYTES) return { refusal: TOO_LONG };
  return { text: line.endsWith('\r') ? line.slice(0, -1) : line };
}

function readBytes(line: Buffer): Read {
  // It may have been cut in the middle of a letter.
  if (line.length > MAX_BYTES) return { refusal: TOO_LONG };
  return isUtf8(line) ? readText(line.toString()) : { refusal: NOT_UTF8 };
}

/** The text without the mark that some programs put before it. */
export function withoutMark(text: string): string {
  return text.replace(BYTE_ORDER_MARK, '');
}
