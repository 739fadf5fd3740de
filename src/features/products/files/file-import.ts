import { diff, record } from '../../audit/audit.log.ts';
import { DomainError, type FieldError } from '../../../core/errors.ts';
import { checked } from '../../../core/validation.ts';
import { inTransaction, type Context } from '../../../request/context.ts';
import { newProduct, type NewProduct } from '../product.rules.ts';
import type { FileRow, RowProblem } from './file-columns.ts';
import { planUpsert, upsert, type Outcome } from './upsert.ts';

/** Options and callbacks of an import. */
export interface ImportOptions {
  /** Name of the file without its directory, for the audit trail. */
  file?: string | undefined;
  /** Reports the result without writing anything. */
  dryRun?: boolean;
  /** Receives each problem of the rejected rows. */
  onRejected: (problem: RowProblem) => void;
  /** Receives the counts so far. */
  onProgress?: (report: ImportReport) => void;
}

/** Row counts of an import, by result. */
export interface ImportReport extends Outcome {
  refused: number;
}

/** Number of rows in a batch: small, because its locks block other writers. */
const BATCH = 5_000;

/**
 * Creates the products of these rows and updates those with the same barcodes, in batches of one
 * transaction each. The same rows may be imported again, for example after an interruption: equal
 * products stay unchanged. Rows that violate the rules of a new product, and duplicate barcodes, go
 * to `onRejected` and do not stop the import. For operators: checks no scope.
 */
export async function importProducts(
  ctx: Context,
  rows: AsyncIterable<FileRow>,
  options: ImportOptions,
): Promise<ImportReport> {
  const report = { created: 0, changed: 0, unchanged: 0, refused: 0 };
  const store = async (batch: readonly NewProduct[]): Promise<void> => {
    const { created, changed, unchanged } = await storeBatch(ctx, batch, options);
    report.created += created;
    report.changed += changed;
    report.unchanged += unchanged;
    options.onProgress?.(report);
  };
  // The next batch is read while one is stored.
  let storing = Promise.resolve();
  let batch: NewProduct[] = [];
  try {
    for await (const product of validProducts(rows, report, options)) {
      if (batch.push(product) < BATCH) continue;
      await storing;
      storing = store(batch);
      storing.catch(() => undefined);
      batch = [];
    }
  } finally {
    await storing;
  }
  if (batch.length > 0) await store(batch);
  return report;
}

function storeBatch(
  ctx: Context,
  batch: readonly NewProduct[],
  { dryRun = false, file }: ImportOptions,
): Promise<Outcome> {
  return inTransaction(ctx, async (tx) => {
    if (dryRun) return planUpsert(tx, batch);
    const outcome = await upsert(tx, batch);
    if (outcome.unchanged < batch.length) {
      const [created, changed] = [String(outcome.created), String(outcome.changed)];
      await record(tx, 'products.imported', undefined, diff({}, { file, created, changed }));
    }
    return outcome;
  });
}

// Yields the valid products, each barcode once. A rejected row does not reserve its barcode.
async function* validProducts(
  rows: AsyncIterable<FileRow>,
  report: { refused: number },
  { onRejected }: ImportOptions,
): AsyncGenerator<NewProduct> {
  const lines = new Map<string, number>();
  for await (const row of rows) {
    const result = validate(row, lines);
    if (!Array.isArray(result)) {
      yield result;
      continue;
    }
    report.refused++;
    for (const { field, message } of result)
      onRejected({ line: row.line, column: field === '' ? null : field, message });
  }
}

function validate({ line, values, error }: FileRow, lines: Map<string, number>) {
  if (error) return [error];
  const product = checked(newProduct, values);
  if (product instanceof DomainError) return [...product.fields];
  const first = lines.get(product.barcode);
  if (first === undefined) {
    lines.set(product.barcode, line);
    return product;
  }
  const message = `Duplicate barcode; first used on line ${first}`;
  return [{ field: 'barcode', type: 'duplicate', message }] satisfies FieldError[];
}
