import { basename } from 'node:path';
import { Command, Option } from 'commander';
import type { Context } from '../request/context.ts';
import { FIELDS } from '../features/products/product.columns.ts';
import { FORMATS, type FileRow, type Format } from '../features/products/files/file-columns.ts';
import { importProducts, type ImportReport } from '../features/products/files/file-import.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { csvRows } from './files/csv.ts';
import { formatOf } from './files/format.ts';
import { readLines, type Line } from './files/line-reader.ts';
import { ndjsonRows } from './files/ndjson.ts';
import { isSameFile } from './files/same-file.ts';
import { DamagedFile, openReader, STANDARD } from './files/reader.ts';
import { interruptible } from './interruption.ts';
import { Progress } from './progress.ts';
import { openRefusedRows } from './refused-rows.ts';

interface ImportFlags {
  format?: Format;
  dryRun?: boolean;
  errors?: string;
  stopOnError?: boolean;
  fromStart?: boolean;
}

const READERS: Record<
  Format,
  (lines: AsyncIterable<readonly Line[]>) => AsyncIterable<readonly FileRow[]>
> = {
  csv: csvRows,
  ndjson: ndjsonRows,
};

const DONE = ['Created', 'Changed', 'Unchanged'] as const;
const PLANNED = ['To create', 'To change', 'To leave unchanged'] as const;

const UNFINISHED = 'The import is incomplete. Run the same command again to resume it.';
const UNFINISHED_FROM_START =
  'The import is incomplete. Run the same command without --from-start to resume it.';

/** `products import`: creates and updates products from a file. */
export function productImportCommand(context: CommandContext): Command {
  return new Command('import')
    .summary('create and update products from a file')
    .description(
      `Create the products of a file, and update those with the same barcode. The file is CSV with the columns ${FIELDS.join(', ')}, or NDJSON with these members, plain or gzip. Other columns of an export are ignored. An interrupted import resumes when the same file is imported again within a day.`,
    )
    .argument('<file>', 'the file, or - for standard input')
    .addOption(
      new Option(
        '--format <format>',
        'file format, unless the name ends with .csv, .ndjson or .jsonl',
      ).choices(FORMATS),
    )
    .option('--dry-run', 'report the changes without writing')
    .option(
      '--errors <file>',
      'write all rejected rows to this file as NDJSON; by default, the first are printed to standard error',
    )
    .option('--stop-on-error', 'stop at the first rejected row; earlier rows are imported')
    .option('--from-start', 'do not resume an interrupted import')
    .action((path: string, flags: ImportFlags, command: Command) => {
      const format = formatOf(command, path, flags.format);
      if (flags.errors !== undefined && isSameFile(context, flags.errors, path))
        command.error('error: --errors must not be the imported file');
      return runCommand(context, ({ ctx }) =>
        interruptible(context, (signal) => importFile(context, ctx, path, format, flags, signal)),
      );
    });
}

// At the signal, the batch in progress is completed.
async function importFile(
  context: CommandContext,
  ctx: Context,
  path: string,
  format: Format,
  flags: ImportFlags,
  signal: AbortSignal,
): Promise<void> {
  const reader = await openReader(context, path, signal);
  const refused = openRefusedRows(context, flags.errors);
  const progress = new Progress(context);
  const summary = (report: ImportReport) =>
    summaryOf(report, flags.dryRun === true ? PLANNED : DONE);
  let report: ImportReport | undefined;
  try {
    report = await importProducts(ctx, READERS[format](readLines(reader.bytes)), {
      ...flags,
      file: path === STANDARD ? undefined : basename(path),
      onRejected(problems) {
        progress.clear();
        refused.write(problems);
      },
      onProgress(current) {
        report = current;
        progress.show(current.read, summary(current), reader.fraction());
      },
    });
    if (report.refused > 0) context.setExitCode(EXIT.failed);
  } catch (error) {
    progress.clear();
    if (report && flags.dryRun !== true && !(error instanceof DamagedFile))
      context.printError(flags.fromStart === true ? UNFINISHED_FROM_START : UNFINISHED);
    throw error;
  } finally {
    progress.clear();
    refused.close();
    if (report) context.print(summary(report));
  }
}

function summaryOf(
  { created, changed, unchanged, skipped, refused }: ImportReport,
  [create, change, leave]: readonly string[],
): string {
  const previously = skipped > 0 ? ` Skipped, imported before: ${skipped}.` : '';
  return `${create}: ${created}. ${change}: ${changed}. ${leave}: ${unchanged}.${previously} Refused: ${refused}.`;
}
