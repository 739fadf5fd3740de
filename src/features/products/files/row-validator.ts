import { DomainError, type FieldError } from '../../../core/errors.ts';
import { check } from '../../../core/validation.ts';
import type { FileRow, RowProblem } from './file-columns.ts';
import { newProduct, type NewProduct } from '../product.rules.ts';
import { BarcodeLines } from './seen-barcodes.ts';

/** Yields the valid products of a file, each barcode once, and reports the other rows. */
export class RowValidator {
  /** True after it has stopped at a rejected row. */
  hasStopped = false;
  private readonly barcodes = new BarcodeLines();
  private read = 0;
  private refused = 0;

  constructor(
    private readonly stopOnError: boolean,
    private readonly onRefused: (problems: readonly RowProblem[]) => void,
  ) {}

  /** Number of rows read, and of those rejected. */
  get counts(): { read: number; refused: number } {
    return { read: this.read, refused: this.refused };
  }

  /** Yields the products of these rows, in order. */
  async *validate(rows: AsyncIterable<readonly FileRow[]>): AsyncGenerator<NewProduct[]> {
    for await (const part of rows) {
      const products: NewProduct[] = [];
      const problems: RowProblem[] = [];
      for (const row of part) {
        this.read++;
        const result = this.validateRow(row);
        if (!Array.isArray(result)) {
          products.push(result);
          continue;
        }
        this.refused++;
        problems.push(
          ...result.map(({ field, type, message }) => ({
            line: row.line,
            column: field === '' ? null : field,
            type,
            message,
          })),
        );
        this.hasStopped = this.stopOnError;
        if (this.hasStopped) break;
      }
      if (problems.length > 0) this.onRefused(problems);
      yield products;
      if (this.hasStopped) return;
    }
  }

  // A rejected row does not reserve its barcode.
  private validateRow(row: FileRow): NewProduct | FieldError[] {
    if ('error' in row) return [row.error];
    try {
      const product = check(newProduct, row.values);
      const firstLine = this.barcodes.add(product.barcode, row.line);
      if (firstLine === undefined) return product;
      return [
        {
          field: 'barcode',
          type: 'duplicate',
          message: `Duplicate barcode; first used on line ${firstLine}`,
        },
      ];
    } catch (error) {
      if (error instanceof DomainError) return [...error.fields];
      throw error;
    }
  }
}
