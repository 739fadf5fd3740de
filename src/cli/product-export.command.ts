import { Command, Option } from 'commander';
import type { Context } from '../request/context.ts';
import { FORMATS, type Format } from '../features/products/files/file-columns.ts';
import { exportCatalogue, countProducts } from '../features/products/files/file-export.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { formatOf } from './files/format.ts';
import { writeText } from './files/writer.ts';
import { STANDARD } from './files/reader.ts';
import { interruptible } from './interruption.ts';
import { Progress } from './progress.ts';

interface ExportFlags {
  format?: Format;
  gzip?: boolean;
  forSpreadsheets?: boolean;
}

/** `products export`: writes the catalogue to a file. */
export function productExportCommand(context: CommandContext): Command {
  return new Command('export')
    .summary('write the catalogue to a file')
    .description(
      'Write a consistent snapshot of all products, by primary key, as CSV or NDJSON. The file appears when it is complete.',
    )
    .argument('[file]', 'the file, or - for standard output', STANDARD)
    .addOption(
      new Option(
        '--format <format>',
        'file format, unless the name ends with .csv, .ndjson or .jsonl',
      ).choices(FORMATS),
    )
    .option('--gzip', 'compress by gzip; the default if the name ends with .gz')
    .option(
      '--for-spreadsheets',
      'put an apostrophe before barcodes, and before names that a spreadsheet would run as formulas; an import removes it',
    )
    .action(
      (
        path: string,
        { format: requested, gzip = path.endsWith('.gz'), forSpreadsheets }: ExportFlags,
        command: Command,
      ) => {
        const format = formatOf(
          command,
          path,
          requested ?? (path === STANDARD ? 'csv' : undefined),
        );
        const exportFile = async (ctx: Context, signal: AbortSignal) => {
          const progress = new Progress(context);
          const total = await countProducts(ctx);
          let written = 0;
          const text = async function* () {
            for await (const chunk of exportCatalogue(ctx, format, forSpreadsheets)) {
              yield chunk.text;
              written += chunk.count;
              progress.show(written, `Products: ${written}.`, written / Math.max(total, 1));
            }
          };
          await writeText(context, path, text(), { gzip, signal }).finally(() => progress.clear());
          if (path !== STANDARD) context.print(`Products in ${path}: ${written}.`);
        };
        return runCommand(context, ({ ctx }) =>
          interruptible(context, (signal) => exportFile(ctx, signal)),
        );
      },
    );
}
