import type { Logger } from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase, type Database } from '../database/database.ts';
import { ConfigError, readConfig, type Config } from '../core/config.ts';
import type { Context } from '../request/context.ts';
import { DomainError } from '../core/errors.ts';
import { osUserName } from '../core/os-user.ts';
import { redactor, type Redact } from '../core/redact.ts';
import { openLog } from '../telemetry/log.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT } from './exit.ts';

/** The database of a command, with the context for services. */
interface OpenDatabase {
  ctx: Context;
  database: Database;
}

/**
 * Runs a command on the configured database, which must be fully migrated unless `anyVersion` is
 * set. On the embedded default, uses the database of a running server, if any. Sets the exit
 * code.
 */
export async function runCommand(
  context: CommandContext,
  work: (opened: OpenDatabase) => Promise<void>,
  { anyVersion = false } = {},
): Promise<void> {
  await runWithoutDatabase(context, async (config) => {
    const log = commandLog(context, config);
    const database = await openDatabase(config, options, log, true);
    try {
      if (config.databaseUrl === undefined) await database.migrate();
      else if (!anyVersion) await database.rejectPendingMigrations();
      const { statements } = database;
      const now = () => new Date();
      const baseContext = {
        config,
        now,
        requestId: 'cli',
        operator: osUserName(),
        log,
        loaders: new Map(),
      };
      await work({
        database,
        ctx: { ...baseContext, em: database.fork(), statements },
      });
    } finally {
      await database.close();
    }
  });
}

/** Opens the log of a command: errors only, on standard error. */
export function commandLog({ stderr }: CommandContext, config: Config): Logger {
  return openLog({ ...config, logLevel: 'error' }, stderr);
}

/** Runs a command that only needs the configuration. Sets the exit code. */
export async function runWithoutDatabase(
  context: CommandContext,
  work: (config: Config) => Promise<void>,
): Promise<void> {
  let redact: Redact = redactor({});
  try {
    // Commands sign nothing, so they need no secret.
    const config = readConfig(context.env, () => '');
    redact = redactor(config);
    await work(config);
  } catch (error) {
    context.printError(redact(messageOf(error)));
    context.setExitCode(error instanceof ConfigError ? EXIT.config : EXIT.failed);
  }
}

// Our own errors have messages for users. Database errors have their cause's message, because the
// ORM's message may contain a statement with its values.
function messageOf(error: unknown): string {
  if (error instanceof DomainError || error instanceof ConfigError) return error.message;
  const cause =
    error instanceof Error && 'previous' in error && error.previous instanceof Error
      ? error.previous
      : error;
  return cause instanceof Error ? cause.message || cause.name : 'The command failed';
}
