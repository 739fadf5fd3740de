import { Command } from 'commander';
import type { CommandContext } from './command-context.ts';
import { productCheckCommand } from './product-check.command.ts';
import { productExportCommand } from './product-export.command.ts';
import { productImportCommand } from './product-import.command.ts';

/** `products …`: imports, exports and checks the catalogue. */
export function productCommands(context: CommandContext): Command {
  return new Command()
    .addCommand(productImportCommand(context))
    .addCommand(productExportCommand(context))
    .addCommand(productCheckCommand(context));
}
