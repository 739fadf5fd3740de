import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { checkDigit } from '../../src/features/products/ean13.ts';
import { withDirectory } from './directories.ts';

/** The header of a CSV file of products. */
export const HEADER = 'name,barcode,price';
/** A row of it. */
export const INK = 'Ink,5901234123457,12.50';

/** What an import prints at its end. */
export function told({ created = 0, changed = 0, left = 0, skipped = 0, refused = 0 }): string {
  const before = skipped > 0 ? ` Skipped, as done before: ${skipped}.` : '';
  return `Created: ${created}. Changed: ${changed}. Left as they are: ${left}.${before} Refused: ${refused}.\n`;
}

/** A text of these lines. */
export function lines(...rows: string[]): string {
  return rows.map((row) => `${row}\n`).join('');
}

/** Rows of different products. */
export function manyRows(count: number): string[] {
  return Array.from({ length: count }, (_, index) => {
    const digits = `501${String(index).padStart(9, '0')}`;
    return `Row ${index},${digits}${checkDigit(digits)},1.00\n`;
  });
}

/** Runs the work with a directory that has these files. */
export async function withFiles(files: Record<string, string | Buffer>, work: (folder: string) => Promise<void>): Promise<void> {
  await withDirectory(async (folder) => {
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
    await work(folder);
  });
}
