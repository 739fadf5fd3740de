import { Command } from 'commander';
import type { CommandContext } from './command-context.ts';
import { productAuditCommand } from './product-check.command.ts';
import { productExportCommand } from './product-export.command.ts';
import { productImportCommand } from './product-import.command.ts';

/** `products …`: what an operator does to the catalogue. */
export function productCommands(context: CommandContext): Command {
  return new Command('products')
    .description('Look after the catalogue: import, export, go over it.')
    .addCommand(productImportCommand(context))
    .addCommand(productExportCommand(context))
    .addCommand(productAuditCommand(context));
}
