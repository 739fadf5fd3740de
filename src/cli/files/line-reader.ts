import { isUtf8 } from 'node:buffer';
import type { FieldError } from '../../core/errors.ts';

/** A line of a file without its line break, and why it cannot be read, if so. Numbers start at 1. */
export interface Line {
  number: number;
  text: string;
  error?: FieldError;
}

/** Maximum number of bytes of a line, more than any product needs. */
export const MAX_BYTES = 64 * 1024;
/** End of an error after which the file is not read further. */
export const NOT_READ = '; the rest of the file was not read';
const NEWLINE = 10;
const CARRIAGE_RETURN = /\r./s;
const BYTE_ORDER_MARK = /^\ufeff/;

/** Error of a line whose text has replacement characters. */
export const NOT_UTF8: FieldError = {
  field: '',
  type: 'not_utf8',
  message: 'The line is not UTF-8',
};

/**
 * Reads the lines of a UTF-8 text without its byte order mark, a batch per chunk. Ends at a line of
 * more than MAX_BYTES.
 */
export async function* readLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Line[]> {
  let count = 0;
  let rest: Buffer = Buffer.alloc(0);
  const linesIn = (buffer: Buffer): Line[] => {
    const lines: Line[] = [];
    for (const content of contentsOf(buffer)) {
      if (count === 0) content.text = content.text.replace(BYTE_ORDER_MARK, '');
      lines.push({ number: ++count, ...content });
      if (isTooLong(content)) break;
    }
    return lines;
  };
  for await (const chunk of bytes) {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end >= 0) {
      const lines = linesIn(Buffer.concat([rest, chunk.subarray(0, end)]));
      yield lines;
      if (lines.some(isTooLong)) return;
    }
    rest = end < 0 ? Buffer.concat([rest, chunk]) : chunk.subarray(end + 1);
    if (rest.length > MAX_BYTES) break;
  }
  if (rest.length > 0) yield linesIn(rest);
}

/** Returns the likely cause of an unreadable line with carriage returns inside, or ''. */
export function lineEndHint(text: string): string {
  return CARRIAGE_RETURN.test(text)
    ? '; lines must end with LF or CRLF, not with CR only as on old Macs'
    : '';
}

type Content = Omit<Line, 'number'>;

function contentsOf(buffer: Buffer): Content[] {
  if (isUtf8(buffer)) return buffer.toString().split('\n').map(decode);
  const lines: Content[] = [];
  for (let start = 0; start <= buffer.length;) {
    const newline = buffer.indexOf(NEWLINE, start);
    const end = newline < 0 ? buffer.length : newline;
    lines.push(readBytes(buffer.subarray(start, end)));
    start = end + 1;
  }
  return lines;
}

function decode(line: string): Content {
  // A UTF-16 code unit takes at most three bytes.
  if (line.length > MAX_BYTES / 3 && Buffer.byteLength(line) > MAX_BYTES) return tooLong(line);
  return { text: line.endsWith('\r') ? line.slice(0, -1) : line };
}

function readBytes(line: Buffer): Content {
  const text = line.toString();
  // The start of a line may end within a character.
  if (line.length > MAX_BYTES) return tooLong(text);
  return isUtf8(line) ? decode(text) : { text, error: NOT_UTF8 };
}

function tooLong(line: string): Content {
  const message = `The line has more than ${MAX_BYTES} bytes${lineEndHint(line)}${NOT_READ}`;
  return { text: '', error: { field: '', type: 'line_too_long', message } };
}

function isTooLong({ error }: Content): boolean {
  return error?.type === 'line_too_long';
}
