import options from '../../mikro-orm.config.ts';
import { openDatabase, type Database } from '../database/database.ts';
import { ConfigError, readConfig, type Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { osUserName } from '../core/os-user.ts';
import { redactor, type Redact } from '../core/redact.ts';
import { openLog } from '../telemetry/log.ts';
import type { CommandContext } from './command-context.ts';

/** Exit codes of the commands: done, refused, used wrongly, configured wrongly (EX_USAGE and EX_CONFIG of sysexits(3)), ended by an interrupt of the terminal. */
export const EXIT = { done: 0, refused: 1, usage: 64, config: 78, interrupted: 130 } as const;

/** What a command on the database works with. */
interface OpenDatabase {
  ctx: Context;
  database: Database;
}

/**
 * Runs a command on the configured database, which is up to date unless `anyVersion` says that this does not matter.
 * On the embedded default this goes through a running server's database where there is one. Sets the exit code.
 */
export async function runCommand(
  context: CommandContext,
  work: (opened: OpenDatabase) => Promise<void>,
  { anyVersion = false } = {},
): Promise<void> {
  await runWithoutDatabase(context, async (config) => {
    const log = openLog({ ...config, logLevel: 'error' }, context.stderr);
    const database = await openDatabase(config, options, log, true);
    try {
      if (config.databaseUrl === undefined) await database.migrate();
      else if (!anyVersion) await database.refusePending();
      const { statements, inBulk } = database;
      const now = () => context.clock.now();
      const facts = { config, now, requestId: 'cli', operator: osUserName(), log, loaders: new Map() };
      await work({ database, ctx: { ...facts, em: database.fork(), statements, inBulk } });
    } finally {
      await database.close();
    }
  });
}

/** Runs a command that needs no more than the configuration. Sets the exit code. */
export async function runWithoutDatabase(context: CommandContext, work: (config: Config) => Promise<void>): Promise<void> {
  let redact: Redact = redactor({});
  try {
    // Commands sign nothing, so they need no secret.
    const config = readConfig(context.env, () => '');
    redact = redactor(config);
    await work(config);
  } catch (error) {
    context.printError(redact(textOf(error)));
    context.setExitCode(error instanceof ConfigError ? EXIT.config : EXIT.refused);
  }
}

// The texts of our own errors are meant for people; what the driver says may hold a statement with its values.
function textOf(error: unknown): string {
  if (error instanceof DomainError || error instanceof ConfigError) return error.message;
  const cause = error instanceof Error && 'previous' in error && error.previous instanceof Error ? error.previous : error;
  return cause instanceof Error ? cause.message || cause.name : 'The command failed';
}
