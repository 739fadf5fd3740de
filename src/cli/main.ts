import 'reflect-metadata';
import { Command, CommanderError } from 'commander';
import { apiKeyCommands } from './api-key.commands.ts';
import { auditCommands } from './audit.commands.ts';
import { EXIT } from './command.ts';
import { migrateCommand, seedCommand } from './database.commands.ts';
import { documentCommands } from './documents.commands.ts';
import { legacyCommands } from './legacy.commands.ts';
import { productCommands } from './product.commands.ts';
import { sessionCommands } from './session.commands.ts';
import { userCommands } from './user.commands.ts';
import { webhookCommands } from './webhook.commands.ts';

const program = new Command('shopfront')
  .description('Commands for the operator of a Shopfront.')
  .showHelpAfterError('(add --help for help)');
for (const command of [
  userCommands(),
  sessionCommands(),
  productCommands(),
  apiKeyCommands(),
  webhookCommands(),
  auditCommands(),
  documentCommands(),
  legacyCommands(),
  seedCommand(),
  migrateCommand(),
]) {
  program.addCommand(command);
}
for (const command of everyCommand(program)) command.exitOverride().copyInheritedSettings(program);

try {
  await program.parseAsync();
} catch (error) {
  // Commander has said what is wrong, or shown the help that was asked for.
  if (!(error instanceof CommanderError)) throw error;
  process.exitCode = error.exitCode === 0 ? EXIT.done : EXIT.usage;
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
