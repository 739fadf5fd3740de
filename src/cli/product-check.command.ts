import { Command } from 'commander';
import { checkCatalogue } from '../features/products/catalogue-check.ts';
import type { CommandContext } from './command-context.ts';
import { runCommand } from './command.ts';
import { EXIT } from './exit.ts';
import { writeText } from './files/writer.ts';
import { STANDARD } from './files/reader.ts';

const SEVERITIES = ['error', 'warning'] as const;

/** `products check`: reports invalid and suspicious products. */
export function productCheckCommand(context: CommandContext): Command {
  return new Command('check')
    .description(
      'Check all products. Errors: violated rules of new products. Warnings: barcodes for use within a company or region, and similar names. The exit code is 1 if there are errors.',
    )
    .action(() =>
      runCommand(context, async ({ ctx }) => {
        const counts = { error: 0, warning: 0 };
        const text = async function* () {
          const findings = checkCatalogue(ctx);
          let next = await findings.next();
          for (; next.done !== true; next = await findings.next()) {
            const { severity, pk, message } = next.value;
            counts[severity]++;
            yield `${severity}: product ${pk}: ${message}\n`;
          }
          const summary = SEVERITIES.map((severity) => `${severity}s: ${counts[severity]}`).join(
            ', ',
          );
          yield `Products: ${next.value}, ${summary}.\n`;
        };
        await writeText(context, STANDARD, text());
        if (counts.error > 0) context.setExitCode(EXIT.failed);
      }),
    );
}
