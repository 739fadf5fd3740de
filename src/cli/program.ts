import 'reflect-metadata';
import { Command, CommanderError } from 'commander';
import { commandContext, type CommandContext, type CommandIo } from './command-context.ts';
import { EXIT } from './exit.ts';
import { VERSION } from '../core/version.ts';

// Each command is loaded when it is called, because the database takes half a second to load.
const COMMANDS: readonly (readonly [
  name: string,
  description: string,
  load: () => Promise<(context: CommandContext) => Command>,
])[] = [
  ['user', 'Manage users.', async () => (await import('./user.commands.ts')).userCommands],
  [
    'session',
    'List and end the sessions of a user.',
    async () => (await import('./session.commands.ts')).sessionCommands,
  ],
  [
    'products',
    'Import and export the catalogue.',
    async () => (await import('./product.commands.ts')).productCommands,
  ],
  [
    'api-keys',
    'Create, list and revoke API keys.',
    async () => (await import('./api-key.commands.ts')).apiKeyCommands,
  ],
  [
    'webhooks',
    'Manage webhooks and their deliveries.',
    async () => (await import('./webhook.commands.ts')).webhookCommands,
  ],
  [
    'audit',
    'List changes of accounts and products, and delete old entries.',
    async () => (await import('./audit.commands.ts')).auditCommands,
  ],
  [
    'rest-usage',
    'List the clients of the REST API, and delete a client.',
    async () => (await import('./rest-usage.commands.ts')).restUsageCommands,
  ],
  [
    'seed',
    'Add the demo data to an empty database: products, and users with public passwords.',
    async () => (await import('./database.commands.ts')).seedCommand,
  ],
  [
    'migrate',
    'Apply pending migrations.',
    async () => (await import('./database.commands.ts')).migrateCommand,
  ],
  [
    'backup',
    'Copy the embedded database and its signing secret. The server may be running.',
    async () => (await import('./backup.commands.ts')).backupCommand,
  ],
  [
    'restore',
    'Replace the embedded database with a backup. A running server continues with it. The replaced database is kept beside it.',
    async () => (await import('./backup.commands.ts')).restoreCommand,
  ],
];

/**
 * Runs the command of the operator in the arguments on these streams, settings and signals. Resolves
 * with the exit code after closing all resources. It uses nothing else of the process, so several
 * may run concurrently in one process.
 */
export async function runProgram(io: CommandIo, args: readonly string[]): Promise<number> {
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
    });
  for (const [name, description, load] of COMMANDS) {
    // As in `user --help`, and `help user`.
    const command = args.slice(0, 2).includes(name) ? (await load())(context) : new Command();
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
}

function everyCommand(command: Command): Command[] {
  return [command, ...command.commands.flatMap(everyCommand)];
}
