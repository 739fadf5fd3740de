import { existsSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import options from '../../mikro-orm.config.ts';
import {
  databaseIn,
  restoreBackup,
  startEmbedded,
  writeBackup,
} from '../../packages/embedded-postgres/index.ts';
import type { Config } from '../core/config.ts';
import { DomainError } from '../core/errors.ts';
import { unwritable } from '../core/file-error.ts';
import { openDatabase } from '../database/database.ts';
import { copySigningSecret } from '../core/signing-secret.ts';
import type { CommandContext } from './command-context.ts';
import { commandLog, runWithoutDatabase } from './command.ts';

const ARCHIVE = 'base.tar.gz';

/** `backup`: copies the embedded database and its signing secret. */
export function backupCommand(context: CommandContext): Command {
  return new Command()
    .argument('<directory>', 'a new directory for the copy')
    .action((directory: string) =>
      runWithoutDatabase(context, async (config) => {
        rejectDatabaseUrl(config);
        if (!existsSync(databaseIn(config.dataDir)))
          throw new DomainError('BAD_USER_INPUT', `There is no database in ${config.dataDir}`);
        await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
          throw unwritable(directory, error);
        });
        try {
          const database = await startEmbedded(config.dataDir, commandLog(context, config), {
            attach: true,
          });
          await writeBackup(database.adminUrl, join(directory, ARCHIVE)).finally(() =>
            database.stop(),
          );
          copySigningSecret(config.dataDir, directory);
        } catch (error) {
          await rm(directory, { recursive: true });
          throw error;
        }
        context.print(`Backed up ${config.dataDir} to ${directory}.`);
      }),
    );
}

/** `restore`: replaces the embedded database with a backup. */
export function restoreCommand(context: CommandContext): Command {
  return new Command()
    .argument('<directory>', 'a directory that `backup` has made')
    .action((directory: string) =>
      runWithoutDatabase(context, async (config) => {
        rejectDatabaseUrl(config);
        const archive = join(directory, ARCHIVE);
        const replaced = await restoreBackup(config.dataDir, archive, async (dataDir) => {
          const restored = { ...config, dataDir };
          const database = await openDatabase(restored, options, commandLog(context, config));
          await database.migrate().finally(() => database.close());
        });
        // A running server keeps its secret in memory: another one would apply from its next start.
        copySigningSecret(directory, config.dataDir);
        context.print(`Restored ${directory} to ${config.dataDir}.`);
        if (replaced !== undefined)
          context.print(`The replaced database is in ${replaced}; remove it if it is not needed.`);
      }),
    );
}

function rejectDatabaseUrl({ databaseUrl }: Config): void {
  if (databaseUrl !== undefined)
    throw new DomainError(
      'BAD_USER_INPUT',
      'This command is for the embedded database. DATABASE_URL is set: use the tools of PostgreSQL, such as pg_dump.',
    );
}
