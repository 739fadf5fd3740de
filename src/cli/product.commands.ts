import { basename } from 'node:path';
import { Command, Option } from 'commander';
import { FORMATS, type Format } from '../features/products/files/file-columns.ts';
import { exportCatalogue } from '../features/products/files/file-export.ts';
import { importProducts, type ImportReport } from '../features/products/files/file-import.ts';
import { FIELDS } from '../features/products/product.columns.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { readRows, STANDARD, writeText } from './product-files.ts';

/** Minimum interval between two lines of progress, in ms. */
const PROGRESS_INTERVAL_MS = 5_000;

interface Flags {
  format?: Format;
  dryRun?: boolean;
}

/** `products …`: imports and exports the catalogue. */
export function productCommands(context: CommandContext): Command {
  const { print, printError } = context;
  const products = new Command();

  products
    .command('import')
    .summary('create and update products from a file')
    .description(
      `Create the products of a file, and update those with the same barcode. The file is CSV with the columns ${FIELDS.join(', ')}, or NDJSON with these members; others are ignored. Rejected rows are printed to standard error. An interrupted import may be run again.`,
    )
    .argument('<file>', 'the file, or - for standard input; gzip if its name ends with .gz')
    .addOption(formatOption())
    .option('--dry-run', 'report the changes without writing')
    .action((path: string, { dryRun = false, ...flags }: Flags, command: Command) => {
      const format = formatOf(command, path, flags.format);
      const showProgress = progress(context);
      return runCommand(context, async ({ ctx }) => {
        const rows = readRows(context, path, format);
        const report = await importProducts(ctx, rows, {
          dryRun,
          file: path === STANDARD ? undefined : basename(path),
          onRejected: ({ line, column, message }) =>
            printError(`Line ${line}: ${column === null ? '' : `${column}: `}${message}`),
          onProgress: (current) => showProgress(summaryOf(current)),
        });
        print(`${dryRun ? 'Not written. ' : ''}${summaryOf(report)}`);
        if (report.refused > 0) context.setExitCode(EXIT.failed);
      });
    });

  products
    .command('export')
    .summary('write the catalogue to a file')
    .description('Write a consistent snapshot of all products, by primary key, as CSV or NDJSON.')
    .argument('[file]', 'the file, or - for standard output; gzip for .gz', STANDARD)
    .addOption(formatOption())
    .action((path: string, flags: Flags, command: Command) => {
      const format = formatOf(command, path, flags.format);
      const showProgress = progress(context);
      return runCommand(context, async ({ ctx }) => {
        let written = 0;
        const text = async function* () {
          for await (const part of exportCatalogue(ctx, format)) {
            yield part.text;
            written += part.count;
            showProgress(`Products: ${written}.`);
          }
        };
        await writeText(context, path, text());
        if (path !== STANDARD) print(`Products in ${path}: ${written}.`);
      });
    });

  return products;
}

function formatOption(): Option {
  return new Option('--format <format>', 'unless the name ends with it').choices(FORMATS);
}

// By the extension before a `.gz`.
function formatOf(command: Command, path: string, requested: Format | undefined): Format {
  const byName = FORMATS.find((format) => path.replace(/\.gz$/, '').endsWith(`.${format}`));
  const format = requested ?? byName ?? (path === STANDARD ? 'csv' : undefined);
  return (
    format ?? command.error(`error: unknown file format; use --format with ${FORMATS.join(' or ')}`)
  );
}

function summaryOf({ created, changed, unchanged, refused }: ImportReport): string {
  return `Created: ${created}. Changed: ${changed}. Unchanged: ${unchanged}. Refused: ${refused}.`;
}

// Returns a function that prints a line to standard error at most every few seconds.
function progress({ printError }: CommandContext): (line: string) => void {
  let printedAt = performance.now();
  return (line) => {
    if (performance.now() - printedAt < PROGRESS_INTERVAL_MS) return;
    printedAt = performance.now();
    printError(line);
  };
}
