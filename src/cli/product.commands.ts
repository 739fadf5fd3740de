import { Command } from 'commander';
import { productAuditCommand } from './product-audit.command.ts';
import { productExportCommand } from './product-export.command.ts';
import { productImportCommand } from './product-import.command.ts';

/** `products …`: what an operator does to the catalogue. */
export function productCommands(): Command {
  return new Command('products')
    .description('Look after the catalogue: import, export, go over it.')
    .addCommand(productImportCommand())
    .addCommand(productExportCommand())
    .addCommand(productAuditCommand());
}
