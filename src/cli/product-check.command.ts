import { Command } from 'commander';
import { audit } from '../features/products/catalogue-check.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT, runCommand } from './command.ts';
import { writeText } from './files/writer.ts';
import { STANDARD } from './files/reader.ts';

const COUNTED = ['error', 'warning'] as const;

/** `products audit`: what about the stored products somebody should look at. */
export function productAuditCommand(context: CommandContext): Command {
  return new Command('audit')
    .description(
      'Go over all products: which break the rules that new ones are held to (errors), which barcodes are for use within a company or region, and which names are alike (warnings). Ends with 1 where there are errors.',
    )
    .action(() =>
      runCommand(context, async ({ ctx }) => {
        const found = { error: 0, warning: 0 };
        const text = async function* () {
          const findings = audit(ctx);
          let next = await findings.next();
          for (; next.done !== true; next = await findings.next()) {
            const { severity, pk, message } = next.value;
            found[severity]++;
            yield `${severity}: product ${pk}: ${message}\n`;
          }
          const counts = COUNTED.map((severity) => `${severity}s: ${found[severity]}`).join(', ');
          yield `Products: ${next.value}, ${counts}.\n`;
        };
        await writeText(context, STANDARD, text());
        if (found.error > 0) context.setExitCode(EXIT.refused);
      }),
    );
}
