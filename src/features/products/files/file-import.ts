import { createHash } from 'node:crypto';
import { differences, noting } from '../../audit/audit.log.ts';
import type { Bulk } from '../../../database/copy.ts';
import type { Context } from '../../../request/context.ts';
import { execute, sql } from '../../../database/sql.ts';
import { DAY_MS } from '../../../core/time.ts';
import type { FileRow, RowProblem } from './file-columns.ts';
import { Sieve } from './row-validator.ts';
import type { NewProduct } from '../product.rules.ts';
import { foresee, reserve, upsert, type Reserved } from './upsert.ts';

/** How an import is to go, and who is told of it. */
export interface ImportOptions {
  /** What the rows are read from, for the audit trail: the name of a file, without its directory. */
  file?: string | undefined;
  /** Says what would become of each row, and writes nothing. */
  dryRun?: boolean;
  /** Ends at the first row that is refused; those before it are stored. */
  stopOnError?: boolean;
  /** Takes also what an interrupted import of the same rows has done, and forgets what interrupted imports have done. */
  fromStart?: boolean;
  /** Is told of the rows that are refused, a part of the file at a time. */
  onRefused: (problems: readonly RowProblem[]) => void;
  /** Is told how far it has come. */
  onProgress?: (report: ImportReport) => void;
}

/** How many rows there were, and what became of them. */
export interface ImportReport {
  read: number;
  created: number;
  changed: number;
  /** They say of a product what it already is. */
  left: number;
  /** Done by an import of the same rows that was interrupted. */
  skipped: number;
  refused: number;
}

/** A batch, with the hash of all up to it. */
interface Part {
  batch: readonly NewProduct[];
  hash: Buffer;
  file: string | undefined;
  reserved: Reserved | undefined;
}

// Few enough that nobody waits long for what a batch has locked.
const BATCH = 5_000;
/** On the embedded database, everyone waits for a batch. */
const EMBEDDED_BATCH = 500;
/** So many batches are stored at once, where there are connections for them and one more: to write a product takes the database longer than to read a row. */
const AT_ONCE = 2;
/** How long what an interrupted import has done is remembered, in ms. */
const REMEMBERED_MS = DAY_MS;

/**
 * Creates the products of these rows, and changes those that have their barcodes, a batch at a time. Each batch is stored together with the
 * fact that it is: where an import ends early, the next one of the same rows leaves out what is done. Rows that the rules of a
 * new product refuse, and barcodes that come twice, are told to `onRefused`, and do not stop the rest. For operators, so it asks for no scope.
 */
export async function importProducts(
  ctx: Context,
  rows: AsyncIterable<readonly FileRow[]>,
  { dryRun = false, stopOnError = false, fromStart = false, file, onRefused, onProgress }: ImportOptions,
): Promise<ImportReport> {
  const { inBulk } = ctx;
  if (!inBulk) throw new TypeError('Rows are imported by commands alone');
  const sieve = new Sieve(stopOnError, onRefused);
  const report: ImportReport = { read: 0, created: 0, changed: 0, left: 0, skipped: 0, refused: 0 };
  const remembered = fromStart ? ctx.now() : horizon(ctx);
  const done: Buffer[] = [];
  const store = async (hash: Buffer, batch: readonly NewProduct[], reserved?: Reserved): Promise<void> => {
    const outcome = await inBulk((bulk) =>
      dryRun ? foreseen(bulk, batch, hash, remembered) : stored(ctx, bulk, { batch, hash, file, reserved }, remembered),
    );
    for (const [name, count] of Object.entries(outcome)) report[name as keyof ImportReport] += count;
    onProgress?.(Object.assign(report, sieve.counts));
  };
  // What it does not come to is not done: where it is interrupted, the next one must not skip that. Which rows a note is of can only be told by reading
  // them, so those of other interrupted imports go, too, whose rows are then done once more.
  if (fromStart && !dryRun) await execute(ctx.em, sql`delete from product_import_batch`);
  const [size, atOnce] = paceOf(ctx);
  // While some batches are being stored, the next is read.
  const storing: Promise<void>[] = [];
  try {
    for await (const batch of batchesOf(sieve.pass(rows), size)) {
      const hash = hashOf(done.at(-1), batch);
      done.push(hash);
      if (storing.length >= atOnce) await storing.shift();
      // Before those after it: whichever is stored first, primary keys run in the order of the rows.
      const begun = store(hash, batch, atOnce > 1 && !dryRun ? await inBulk((bulk) => reserve(bulk, batch)) : undefined);
      begun.catch(() => undefined);
      storing.push(begun);
    }
  } finally {
    await Promise.allSettled(storing);
    await Promise.all(storing);
  }
  // What has come to its end is no interrupted import: the same rows again are all done again.
  if (!dryRun && !sieve.hasStopped) await execute(ctx.em, sql`delete from product_import_batch where hash = any(${done}::bytea[])`);
  return Object.assign(report, sieve.counts);
}

/** Forgets what imports have done that were interrupted more than a day ago. Returns how many batches. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from product_import_batch where imported_at <= ${horizon(ctx)}`);
  return affected;
}

// How many products a batch has, and how many batches are stored at once.
function paceOf({ config: { databaseUrl, poolMax } }: Context): [size: number, atOnce: number] {
  if (databaseUrl === undefined) return [EMBEDDED_BATCH, 1];
  return [BATCH, poolMax > AT_ONCE ? AT_ONCE : 1];
}

async function* batchesOf(products: AsyncIterable<readonly NewProduct[]>, size: number): AsyncGenerator<NewProduct[]> {
  let batch: NewProduct[] = [];
  for await (const some of products) {
    batch = batch.concat(some);
    // Of the same size whatever the pieces of the file are, so that they are the same the next time.
    for (; batch.length >= size; batch = batch.slice(size)) yield batch.slice(0, size);
  }
  if (batch.length > 0) yield batch;
}

// Of all rows up to here: a batch is done only where all before it were the same, too.
function hashOf(before: Buffer | undefined, batch: readonly NewProduct[]): Buffer {
  const hash = createHash('sha256').update(before ?? '');
  // None of these has a line break in it.
  return hash.update(batch.map(({ name, barcode, price }) => `${barcode} ${price} ${name}\n`).join('')).digest();
}

// Another import of the same rows waits here until this one has stored the batch, and finds it done.
async function stored(ctx: Context, bulk: Bulk, { batch, hash, file, reserved }: Part, after: Date): Promise<Partial<ImportReport>> {
  const now = ctx.now();
  const claimed = await bulk.run(sql`
    insert into product_import_batch (hash, imported_at) values (${hash}, ${now})
    on conflict (hash) do update set imported_at = excluded.imported_at where product_import_batch.imported_at <= ${after} returning 1`);
  if (claimed.length === 0) return { skipped: batch.length };
  const outcome = await upsert(bulk, batch, now, reserved);
  const counts = { created: String(outcome.created), changed: String(outcome.changed) };
  if (outcome.left < batch.length) await bulk.run(noting(ctx, 'products.imported', undefined, differences({}, { file, ...counts })));
  return outcome;
}

async function foreseen(bulk: Bulk, batch: readonly NewProduct[], hash: Buffer, after: Date): Promise<Partial<ImportReport>> {
  const found = await bulk.run(sql`select 1 from product_import_batch where hash = ${hash} and imported_at > ${after}`);
  return found.length > 0 ? { skipped: batch.length } : foresee(bulk, batch);
}

function horizon(ctx: Context): Date {
  return new Date(ctx.now().getTime() - REMEMBERED_MS);
}
