import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { withDirectory } from './directories.ts';

/** The header of a CSV file of products. */
export const HEADER = 'name,barcode,price';
/** A row of such a file. */
export const INK = 'Ink,5901234123457,12.50';

/** The summary that an import prints. */
export function importSummary({ created = 0, changed = 0, unchanged = 0, refused = 0 }): string {
  return `Created: ${created}. Changed: ${changed}. Unchanged: ${unchanged}. Refused: ${refused}.\n`;
}

/** Joins these lines to a text. */
export function lines(...rows: string[]): string {
  return rows.map((row) => `${row}\n`).join('');
}

/** CSV rows of different products. */
export function manyRows(count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const digits = `501${String(index).padStart(9, '0')}`;
    return `Row ${index},${digits}${checkDigit(digits)},1.00\n`;
  });
}

/** Runs the work with a directory that contains these files. */
export async function withFiles(
  files: Record<string, string | Buffer>,
  work: (folder: string) => Promise<void>,
): Promise<void> {
  await withDirectory(async (folder) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    await work(folder);
  });
}
