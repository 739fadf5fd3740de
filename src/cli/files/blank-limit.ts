import type { FileRow } from '../../features/products/files/file-columns.ts';
import { NOT_READ, type Line } from './line-reader.ts';

/** Maximum of LINE and the characters of all lines without a row: more than a blank sheet has. */
const MAX_BLANK = 16 * 1024 * 1024;
/** What a line takes, as a number of characters. */
const LINE = 8;

/** Limits the blank part of a file, which a few bytes of gzip can make endless. */
export class BlankLimit {
  private count = 0;

  /** Returns the error of too many blank lines, if any, after a batch with these rows. */
  check(lines: readonly Line[], rows: readonly FileRow[]): FileRow | undefined {
    this.count =
      rows.length > 0 ? 0 : lines.reduce((sum, { text }) => sum + text.length + LINE, this.count);
    if (this.count <= MAX_BLANK) return undefined;
    const message = `Too many blank lines${NOT_READ}`;
    return { line: lines.at(-1)?.number ?? 0, error: { field: '', type: 'blank', message } };
  }
}
