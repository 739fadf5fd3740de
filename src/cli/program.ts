import 'reflect-metadata';
import { Command, CommanderError } from 'commander';
import { apiKeyCommands } from './api-key.commands.ts';
import { auditCommands } from './audit.commands.ts';
import { backupCommand, restoreCommand } from './backup.commands.ts';
import { commandContext, type CommandIo } from './command-context.ts';
import { EXIT } from './command.ts';
import { migrateCommand, seedCommand } from './database.commands.ts';
import { documentCommands } from './documents.commands.ts';
import { restUsageCommands } from './rest-usage.commands.ts';
import { productCommands } from './product.commands.ts';
import { sessionCommands } from './session.commands.ts';
import { userCommands } from './user.commands.ts';
import { VERSION } from '../core/version.ts';
import { webhookCommands } from './webhook.commands.ts';

/** The command line, for a single run. */
export interface Program {
  /** Runs the command in the arguments. Resolves with the exit code after closing all resources. */
  run(args: readonly string[]): Promise<number>;
}

/**
 * Creates the operator's command line on these streams, settings and signals. It uses nothing else
 * of the process, so several may run concurrently in one process.
 */
export function createProgram(io: CommandIo): Program {
  let exitCode: number = EXIT.done;
  const context = commandContext(io, (code) => {
    exitCode = code;
  });
  const { stdout, stderr } = context;
  const program = new Command('shopfront')
    .description('Administration commands of Shopfront.')
    .version(VERSION)
    .showHelpAfterError('(add --help for help)')
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // Without a width, commander uses 80 columns.
      getOutHelpWidth: () => (stdout.isTTY ? stdout.columns : undefined) as number,
      getErrHelpWidth: () => (stderr.isTTY ? stderr.columns : undefined) as number,
    });
  for (const command of [
    userCommands(context),
    sessionCommands(context),
    productCommands(context),
    apiKeyCommands(context),
    webhookCommands(context),
    auditCommands(context),
    documentCommands(context),
    restUsageCommands(context),
    seedCommand(context),
    migrateCommand(context),
    backupCommand(context),
    restoreCommand(context),
  ]) {
    program.addCommand(command);
  }
  for (const command of everyCommand(program))
    command.exitOverride().copyInheritedSettings(program);
  return {
    async run(args) {
      try {
        await program.parseAsync(args, { from: 'user' });
      } catch (error) {
        // Commander has printed the error or the help.
        if (!(error instanceof CommanderError)) throw error;
        return error.exitCode === 0 ? EXIT.done : EXIT.usage;
      }
      return exitCode;
    },
  };
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
