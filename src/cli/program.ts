import 'reflect-metadata';
import { Command, CommanderError } from 'commander';
import { apiKeyCommands } from './api-key.commands.ts';
import { auditCommands } from './audit.commands.ts';
import { commandContext, type CommandIo } from './command-context.ts';
import { EXIT } from './command.ts';
import { migrateCommand, seedCommand } from './database.commands.ts';
import { documentCommands } from './documents.commands.ts';
import { legacyCommands } from './rest-usage.commands.ts';
import { productCommands } from './product.commands.ts';
import { sessionCommands } from './session.commands.ts';
import { userCommands } from './user.commands.ts';
import { webhookCommands } from './webhook.commands.ts';

/** The command line, ready to run once. */
export interface Program {
  /** Runs the command that the arguments name. Resolves with the exit code once everything the command opened is closed. */
  run(args: readonly string[]): Promise<number>;
}

/**
 * Creates the command line of the operator on these streams, settings and signals. It uses nothing else of the process, so several
 * may run in one, also at the same time.
 */
export function createProgram(io: CommandIo): Program {
  let exitCode: number = EXIT.done;
  const context = commandContext(io, (code) => {
    exitCode = code;
  });
  const { stdout, stderr } = context;
  const program = new Command('shopfront')
    .description('Commands for the operator of a Shopfront.')
    .showHelpAfterError('(add --help for help)')
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      // Without a width, commander takes its own, of 80 columns.
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
    legacyCommands(context),
    seedCommand(context),
    migrateCommand(context),
  ]) {
    program.addCommand(command);
  }
  for (const command of everyCommand(program)) command.exitOverride().copyInheritedSettings(program);
  return {
    async run(args) {
      try {
        await program.parseAsync(args, { from: 'user' });
      } catch (error) {
        // Commander has said what is wrong, or shown the help that was asked for.
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
