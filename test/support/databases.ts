import pg from 'pg';
import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { startEmbedded } from '../../src/database/embedded/supervisor.ts';
import { readConfig } from '../../src/core/config.ts';
import { execute, raw } from '../../src/database/sql.ts';
import { MAKE_CLEAN } from './clean.ts';
import { copyFrom, makeDataDir, removeDirectory } from './directories.ts';

/** An empty, migrated database: its settings, and a function that drops it. */
export interface TestDatabase {
  env: Record<string, string>;
  drop(): Promise<void>;
}

/** The signing secret of all tests. */
export const TEST_SECRET = 'only-for-tests-only-for-tests-only';

const silent = pino({ level: 'silent' });

/** Creates a database for one worker: on the server of TEST_DATABASE_URL, or embedded. */
export async function makeDatabase(name: string): Promise<TestDatabase> {
  const server = process.env['TEST_DATABASE_URL'];
  const made =
    server === undefined || server === '' ? await makeEmbedded() : await makeOnServer(server, name);
  await migrate(made);
  return made;
}

/** Creates the data directory that later ones are copied from. */
export async function makeTemplate(): Promise<Pick<TestDatabase, 'drop'>> {
  const dataDir = await makeDataDir();
  const embedded = await startEmbedded(dataDir, silent);
  await migrate({ env: { DATA_DIR: dataDir } });
  await embedded.stop();
  copyFrom(dataDir);
  return { drop: () => removeDirectory(dataDir) };
}

async function migrate({ env }: Pick<TestDatabase, 'env'>): Promise<void> {
  const database = await openDatabase(
    readConfig({ ...env, SIGNING_SECRET: TEST_SECRET }, () => undefined),
    options,
    silent,
    true,
  );
  await database.migrate();
  await execute(database.fork(), raw(MAKE_CLEAN));
  await database.close();
}

async function makeOnServer(server: string, name: string): Promise<TestDatabase> {
  const url = new URL(server);
  url.pathname = `/${name}`;
  const run = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await run(`drop database if exists "${name}" with (force)`);
  await run(`create database "${name}"`);
  return {
    env: { DATABASE_URL: url.href },
    drop: () => run(`drop database if exists "${name}" with (force)`),
  };
}

async function makeEmbedded(): Promise<TestDatabase> {
  const dataDir = await makeDataDir();
  const embedded = await startEmbedded(dataDir, silent);
  return {
    env: { DATA_DIR: dataDir },
    async drop() {
      await embedded.stop();
      await removeDirectory(dataDir);
    },
  };
}
