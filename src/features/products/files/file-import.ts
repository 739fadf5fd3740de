import { createHash } from 'node:crypto';
import { diff, recordStatement } from '../../audit/audit.log.ts';
import type { CopyTransaction } from '../../../database/copy.ts';
import type { Context } from '../../../request/context.ts';
import { execute, sql } from '../../../database/sql.ts';
import { DAY_MS } from '../../../core/time.ts';
import type { FileRow, RowProblem } from './file-columns.ts';
import { FIELDS } from '../product.columns.ts';
import { RowValidator } from './row-validator.ts';
import type { NewProduct } from '../product.rules.ts';
import { planBatch, reserve, upsert, type Reserved } from './upsert.ts';

/** Options and callbacks of an import. */
export interface ImportOptions {
  /** Name of the file without its directory, for the audit trail. */
  file?: string | undefined;
  /** Reports the result without writing anything. */
  dryRun?: boolean;
  /** Stops at the first rejected row; the rows before it are stored. */
  stopOnError?: boolean;
  /** Does not resume an interrupted import; deletes the state of all interrupted imports. */
  fromStart?: boolean;
  /** Receives the rejected rows, one part of the file at a time. */
  onRejected: (problems: readonly RowProblem[]) => void;
  /** Receives the counts so far. */
  onProgress?: (report: ImportReport) => void;
}

/** Row counts of an import, by result. */
export interface ImportReport {
  read: number;
  created: number;
  changed: number;
  /** Equal to the stored product. */
  unchanged: number;
  /** Stored by an interrupted import of the same rows. */
  skipped: number;
  refused: number;
}

/** A batch; `hash` covers all rows up to its end. */
interface ImportBatch {
  batch: readonly NewProduct[];
  hash: Buffer;
  file: string | undefined;
  reserved: Reserved | undefined;
}

/** Number of rows in a batch: small, because its locks block other writers. */
const BATCH = 5_000;
/**
 * Maximum number of batches to store concurrently, if the pool has a connection more: writing a
 * product takes longer than reading a row.
 */
const MAX_CONCURRENT_BATCHES = 2;
/** Time in ms during which an interrupted import can be resumed. */
const RESUMABLE_MS = DAY_MS;

/**
 * Creates the products of these rows and updates those with the same barcodes, in batches. Each
 * batch is recorded in its transaction, so that after an interruption the next import of the same
 * rows skips it. Rows that violate the rules of a new product, and duplicate barcodes, go to
 * `onRefused` and do not stop the import. For operators: checks no scope.
 */
export async function importProducts(
  ctx: Context,
  rows: AsyncIterable<readonly FileRow[]>,
  {
    dryRun = false,
    stopOnError = false,
    fromStart = false,
    file,
    onRejected: onRefused,
    onProgress,
  }: ImportOptions,
): Promise<ImportReport> {
  const { inCopyTransaction } = ctx;
  if (!inCopyTransaction)
    throw new TypeError('Import needs a copy transaction, which only commands have');
  const validator = new RowValidator(stopOnError, onRefused);
  const report: ImportReport = {
    read: 0,
    created: 0,
    changed: 0,
    unchanged: 0,
    skipped: 0,
    refused: 0,
  };
  const after = fromStart ? ctx.now() : cutoff(ctx);
  const done: Buffer[] = [];
  const store = async (
    hash: Buffer,
    batch: readonly NewProduct[],
    reserved?: Reserved,
  ): Promise<void> => {
    const outcome = await inCopyTransaction((copy) =>
      dryRun
        ? dryRunBatch(copy, batch, hash, after)
        : storeBatch(ctx, copy, { batch, hash, file, reserved }, after),
    );
    for (const [name, count] of Object.entries(outcome))
      report[name as keyof ImportReport] += count;
    onProgress?.(Object.assign(report, validator.counts));
  };
  // If this import is interrupted too, the next one must not skip rows that this one has not
  // reached. Only reading the rows shows which record is theirs, so the records of other
  // interrupted imports are deleted, too; their rows are then imported again.
  if (fromStart && !dryRun) await execute(ctx.em, sql`delete from product_import_batch`);
  const concurrency =
    ctx.config.databasePoolMax > MAX_CONCURRENT_BATCHES ? MAX_CONCURRENT_BATCHES : 1;
  // The next batch is read while others are stored.
  const storing: Promise<void>[] = [];
  try {
    for await (const batch of batchesOf(validator.validate(rows))) {
      const hash = hashOf(done.at(-1), batch);
      done.push(hash);
      if (storing.length >= concurrency) await storing.shift();
      // Primary keys follow the order of the rows, whichever batch is stored first.
      const stored = store(
        hash,
        batch,
        concurrency > 1 && !dryRun
          ? await inCopyTransaction((copy) => reserve(copy, batch))
          : undefined,
      );
      stored.catch(() => undefined);
      storing.push(stored);
    }
  } finally {
    await Promise.allSettled(storing);
    await Promise.all(storing);
  }
  // A completed import is not resumed: the same rows would be imported in full again.
  if (!dryRun && !validator.hasStopped)
    await execute(ctx.em, sql`delete from product_import_batch where hash = any(${done}::bytea[])`);
  return Object.assign(report, validator.counts);
}

/** Deletes the state of imports interrupted more than a day ago. Returns the number of batches. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from product_import_batch where imported_at <= ${cutoff(ctx)}`,
  );
  return affected;
}

async function* batchesOf(
  products: AsyncIterable<readonly NewProduct[]>,
): AsyncGenerator<NewProduct[]> {
  let batch: NewProduct[] = [];
  for await (const part of products) {
    batch = batch.concat(part);
    // Independent of the parts of the file, so that a resumed import has the same batches.
    for (; batch.length >= BATCH; batch = batch.slice(BATCH)) yield batch.slice(0, BATCH);
  }
  if (batch.length > 0) yield batch;
}

// Covers all rows so far: a batch counts as stored only if all earlier rows are the same, too.
function hashOf(previous: Buffer | undefined, batch: readonly NewProduct[]): Buffer {
  const hash = createHash('sha256').update(previous ?? '');
  // No field contains a control character.
  return hash
    .update(batch.map((row) => `${FIELDS.map((field) => row[field]).join('\t')}\n`).join(''))
    .digest();
}

// A concurrent import of the same rows waits for this insert, then skips the batch.
async function storeBatch(
  ctx: Context,
  copy: CopyTransaction,
  { batch, hash, file, reserved }: ImportBatch,
  after: Date,
): Promise<Partial<ImportReport>> {
  const now = ctx.now();
  const claimed = await copy.run(sql`
    insert into product_import_batch (hash, imported_at) values (${hash}, ${now})
    on conflict (hash) do update set imported_at = excluded.imported_at where product_import_batch.imported_at <= ${after} returning 1`);
  if (claimed.length === 0) return { skipped: batch.length };
  const outcome = await upsert(copy, batch, now, reserved);
  const counts = { created: String(outcome.created), changed: String(outcome.changed) };
  if (outcome.unchanged < batch.length)
    await copy.run(
      recordStatement(ctx, 'products.imported', undefined, diff({}, { file, ...counts })),
    );
  return outcome;
}

async function dryRunBatch(
  copy: CopyTransaction,
  batch: readonly NewProduct[],
  hash: Buffer,
  after: Date,
): Promise<Partial<ImportReport>> {
  const stored = await copy.run(
    sql`select 1 from product_import_batch where hash = ${hash} and imported_at > ${after}`,
  );
  return stored.length > 0 ? { skipped: batch.length } : planBatch(copy, batch);
}

function cutoff(ctx: Context): Date {
  return new Date(ctx.now().getTime() - RESUMABLE_MS);
}
