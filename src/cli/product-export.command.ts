import { Command, Option } from 'commander';
import type { Context } from '../request/context.ts';
import { FORMATS, type Format } from '../features/products/files/file-columns.ts';
import { catalogueAsFile, size } from '../features/products/files/file-export.ts';
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
      'Write all products as of one moment, by primary key, as CSV or NDJSON, to be imported elsewhere or read by other programs. A file is there when it is whole.',
    )
    .argument('[file]', 'the file, or - for standard output', STANDARD)
    .addOption(new Option('--format <format>', 'what it is, where its name does not end with .csv, .ndjson or .jsonl').choices(FORMATS))
    .option('--gzip', 'pack it, as is done where the name of the file ends with .gz')
    .option('--for-spreadsheets', 'put an apostrophe before names that a spreadsheet would take for formulas; not for importing')
    .action((path: string, { format: asked, gzip = path.endsWith('.gz'), forSpreadsheets }: ExportFlags, command: Command) => {
      const format = formatOf(command, path, asked ?? (path === STANDARD ? 'csv' : undefined));
      const exporting = async (ctx: Context, signal: AbortSignal) => {
        const progress = new Progress(context);
        const total = await size(ctx);
        let written = 0;
        const text = async function* () {
          for await (const piece of catalogueAsFile(ctx, format, forSpreadsheets)) {
            yield piece.text;
            written += piece.count;
            progress.show(written, `Products: ${written}.`, written / Math.max(total, 1));
          }
        };
        await writeText(context, path, text(), { gzip, signal }).finally(() => progress.clear());
        if (path !== STANDARD) context.print(`Products in ${path}: ${written}.`);
      };
      return runCommand(context, ({ ctx }) => interruptible(context, (signal) => exporting(ctx, signal)));
    });
}
