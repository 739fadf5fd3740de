import { basename } from 'node:path';
import { Command, Option } from 'commander';
import type { Context } from '../request/context.ts';
import { FORMATS, type FileRow, type Format } from '../features/products/files/file-columns.ts';
import { importProducts, type ImportReport } from '../features/products/files/file-import.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT, runCommand } from './command.ts';
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

const READERS: Record<Format, (lines: AsyncIterable<readonly Line[]>) => AsyncIterable<readonly FileRow[]>> = {
  csv: csvRows,
  ndjson: ndjsonRows,
};

const DONE = ['Created', 'Changed', 'Left as they are'] as const;
const PLANNED = ['To create', 'To change', 'To leave as they are'] as const;

const UNFINISHED = 'This is not all: the same command again goes on from here.';
const UNFINISHED_FROM_START = 'This is not all: the same command without --from-start goes on from here.';

/** `products import`: creates and changes products as a file says. */
export function productImportCommand(context: CommandContext): Command {
  return new Command('import')
    .summary('create and change products as a file says')
    .description(
      'Create the products of a file, and change those that have one of its barcodes. The file is CSV with the columns name, barcode and price, or NDJSON with these members, plain or packed by gzip. Columns that only an export has are ignored. An import that was interrupted goes on where it stopped when the same file is imported again within a day.',
    )
    .argument('<file>', 'the file, or - for standard input')
    .addOption(new Option('--format <format>', 'what it is, where its name does not end with .csv, .ndjson or .jsonl').choices(FORMATS))
    .option('--dry-run', 'say what would become of the rows, and write nothing')
    .option('--errors <file>', 'tell of each row that is refused in this file, as NDJSON; otherwise of the first on standard error')
    .option('--stop-on-error', 'stop at the first row that is refused; those before it are imported')
    .option('--from-start', 'take also the rows that an interrupted import has done')
    .action((path: string, flags: ImportFlags, command: Command) => {
      const format = formatOf(command, path, flags.format);
      if (flags.errors !== undefined && isSameFile(context, flags.errors, path))
        command.error('error: --errors names the file that is imported');
      return runCommand(context, ({ ctx }) => interruptible(context, (signal) => importFile(context, ctx, path, format, flags, signal)));
    });
}

// At the signal, what is being stored is finished.
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
  const tally = (report: ImportReport) => told(report, flags.dryRun === true ? PLANNED : DONE);
  let report: ImportReport | undefined;
  try {
    report = await importProducts(ctx, READERS[format](readLines(reader.bytes)), {
      ...flags,
      file: path === STANDARD ? undefined : basename(path),
      onRefused(problems) {
        progress.clear();
        refused.tell(problems);
      },
      onProgress(so) {
        report = so;
        progress.show(so.read, tally(so), reader.fraction());
      },
    });
    if (report.refused > 0) context.setExitCode(EXIT.refused);
  } catch (error) {
    progress.clear();
    if (report && flags.dryRun !== true && !(error instanceof DamagedFile))
      context.printError(flags.fromStart === true ? UNFINISHED_FROM_START : UNFINISHED);
    throw error;
  } finally {
    progress.clear();
    refused.end();
    if (report) context.print(tally(report));
  }
}

function told({ created, changed, left, skipped, refused }: ImportReport, [create, change, leave]: readonly string[]): string {
  const before = skipped > 0 ? ` Skipped, as done before: ${skipped}.` : '';
  return `${create}: ${created}. ${change}: ${changed}. ${leave}: ${left}.${before} Refused: ${refused}.`;
}
