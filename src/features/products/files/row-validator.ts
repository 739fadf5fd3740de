import { DomainError, type FieldError } from '../../../core/errors.ts';
import { check } from '../../../core/validation.ts';
import type { FileRow, RowProblem } from './file-columns.ts';
import { newProduct, type NewProduct } from '../product.rules.ts';
import { SeenBarcodes } from './seen-barcodes.ts';

/** Lets through the rows of a file that are products, each barcode once, and tells of the others. */
export class Sieve {
  /** True where it has stopped at a row that it refused. */
  hasStopped = false;
  private readonly seen = new SeenBarcodes();
  private read = 0;
  private refused = 0;

  constructor(
    private readonly stopOnError: boolean,
    private readonly onRefused: (problems: readonly RowProblem[]) => void,
  ) {}

  /** How many rows were read, and how many of them refused. */
  get counts(): { read: number; refused: number } {
    return { read: this.read, refused: this.refused };
  }

  /** The products of these rows, in their order. */
  async *pass(rows: AsyncIterable<readonly FileRow[]>): AsyncGenerator<NewProduct[]> {
    for await (const some of rows) {
      const products: NewProduct[] = [];
      const problems: RowProblem[] = [];
      for (const row of some) {
        this.read++;
        const found = this.look(row);
        if (!Array.isArray(found)) {
          products.push(found);
          continue;
        }
        this.refused++;
        problems.push(...found.map(({ field, type, message }) => ({ line: row.line, column: field === '' ? null : field, type, message })));
        this.hasStopped = this.stopOnError;
        if (this.hasStopped) break;
      }
      if (problems.length > 0) this.onRefused(problems);
      yield products;
      if (this.hasStopped) return;
    }
  }

  // A row that is refused has not taken its barcode.
  private look(row: FileRow): NewProduct | FieldError[] {
    if ('refusal' in row) return [row.refusal];
    try {
      const product = check(newProduct, row.values);
      const first = this.seen.note(product.barcode, row.line);
      if (first === undefined) return product;
      return [{ field: 'barcode', type: 'duplicate', message: `The barcode stands on line ${first}, too` }];
    } catch (error) {
      if (error instanceof DomainError) return [...error.fields];
      throw error;
    }
  }
}
