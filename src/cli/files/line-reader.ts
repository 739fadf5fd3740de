import { isUtf8 } from 'node:buffer';
import type { FieldError } from '../../core/errors.ts';

/** A line of a file without its line break, or its error. Numbers start at 1. */
export type Line = { number: number } & ({ text: string } | { error: FieldError });

/** Maximum number of bytes of a line, more than any product needs. */
const MAX_BYTES = 64 * 1024;
const NEWLINE = 10;
const BYTE_ORDER_MARK = /^\ufeff/;

const TOO_LONG: FieldError = {
  field: '',
  type: 'line_too_long',
  message: `The line has more than ${MAX_BYTES} bytes`,
};
const NOT_UTF8: FieldError = { field: '', type: 'not_utf8', message: 'The line is not UTF-8' };

/** Reads the lines of a UTF-8 text, a batch per chunk. Buffers at most MAX_BYTES of a long line. */
export async function* readLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let count = 0;
  let rest: Buffer = Buffer.alloc(0);
  const linesIn = (buffer: Buffer): Line[] => {
    const lines = split(buffer).map((line, index): Line => ({
      number: count + index + 1,
      ...line,
    }));
    count += lines.length;
    return lines;
  };
  for await (const chunk of bytes) {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end < 0) {
      if (rest.length <= MAX_BYTES) rest = Buffer.concat([rest, chunk]).subarray(0, MAX_BYTES + 1);
      continue;
    }
    yield linesIn(Buffer.concat([rest, chunk.subarray(0, end)]));
    rest = chunk.subarray(end + 1);
  }
  if (rest.length > 0) yield linesIn(rest);
}

type LineContent = { text: string } | { error: FieldError };

function split(buffer: Buffer): LineContent[] {
  if (isUtf8(buffer)) return buffer.toString().split('\n').map(decode);
  const lines: LineContent[] = [];
  for (let start = 0; start <= buffer.length;) {
    const newline = buffer.indexOf(NEWLINE, start);
    const end = newline < 0 ? buffer.length : newline;
    lines.push(readBytes(buffer.subarray(start, end)));
    start = end + 1;
  }
  return lines;
}

function decode(line: string): LineContent {
  // A UTF-16 code unit takes at most three bytes.
  if (line.length > MAX_BYTES / 3 && Buffer.byteLength(line) > MAX_BYTES)
    return { error: TOO_LONG };
  return { text: line.endsWith('\r') ? line.slice(0, -1) : line };
}

function readBytes(line: Buffer): LineContent {
  // A truncated line may end within a character.
  if (line.length > MAX_BYTES) return { error: TOO_LONG };
  return isUtf8(line) ? decode(line.toString()) : { error: NOT_UTF8 };
}

/** Removes the byte order mark that some programs write. */
export function withoutByteOrderMark(text: string): string {
  return text.replace(BYTE_ORDER_MARK, '');
}
