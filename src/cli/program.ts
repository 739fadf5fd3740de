import 'reflect-metadata';
import { Command, CommanderError } from 'commander';
import { commandContext, type CommandContext, type CommandIo } from './command-context.ts';
import { EXIT } from './exit.ts';
import { VERSION } from '../core/version.ts';

/** A command, which is loaded when it is called, because the database takes half a second to load. */
interface LazyCommand {
  name: string;
  description: string;
  load: (context: CommandContext) => Promise<Command>;
}

const COMMANDS: readonly LazyCommand[] = [
  {
    name: 'user',
    description: 'Manage users.',
    load: async (context) => (await import('./user.commands.ts')).userCommands(context),
  },
  {
    name: 'session',
    description: 'List and end the sessions of a user.',
    load: async (context) => (await import('./session.commands.ts')).sessionCommands(context),
  },
  {
    name: 'products',
    description: 'Import, export and check the catalogue.',
    load: async (context) => (await import('./product.commands.ts')).productCommands(context),
  },
  {
    name: 'api-keys',
    description: 'Create, list and revoke API keys.',
    load: async (context) => (await import('./api-key.commands.ts')).apiKeyCommands(context),
  },
  {
    name: 'webhooks',
    description: 'Manage webhooks and their deliveries.',
    load: async (context) => (await import('./webhook.commands.ts')).webhookCommands(context),
  },
  {
    name: 'audit',
    description: 'List changes of accounts and products, and delete old entries.',
    load: async (context) => (await import('./audit.commands.ts')).auditCommands(context),
  },
  {
    name: 'documents',
    description: 'Check manifests of trusted GraphQL documents.',
    load: async (context) => (await import('./documents.commands.ts')).documentCommands(context),
  },
  {
    name: 'rest-usage',
    description: 'List the clients of the REST API, and delete a client.',
    load: async (context) => (await import('./rest-usage.commands.ts')).restUsageCommands(context),
  },
  {
    name: 'seed',
    description:
      'Add the demo data to an empty database: products, and users with public passwords.',
    load: async (context) => (await import('./database.commands.ts')).seedCommand(context),
  },
  {
    name: 'migrate',
    description: 'Apply pending migrations.',
    load: async (context) => (await import('./database.commands.ts')).migrateCommand(context),
  },
  {
    name: 'backup',
    description: 'Copy the embedded database and its signing secret. The server may be running.',
    load: async (context) => (await import('./backup.commands.ts')).backupCommand(context),
  },
  {
    name: 'restore',
    description:
      'Replace the embedded database with a backup. A running server continues with it. The replaced database is kept beside it.',
    load: async (context) => (await import('./backup.commands.ts')).restoreCommand(context),
  },
];

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
  return {
    async run(args) {
      for (const { name, description, load } of COMMANDS) {
        // As in `user --help`, and `help user`.
        const command = args.slice(0, 2).includes(name) ? await load(context) : new Command();
        program.addCommand(command.name(name).description(description));
      }
      for (const command of everyCommand(program))
        command.exitOverride().copyInheritedSettings(program);
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
