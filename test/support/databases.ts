import pino from 'pino';
import options from '../../mikro-orm.config.ts';
import { openDatabase } from '../../src/database/database.ts';
import { startEmbedded } from '../../packages/embedded-postgres/index.ts';
import { readConfig } from '../../src/core/config.ts';
import { MAKE_CLEAN } from './clean.ts';
import { copyFrom, makeDataDir, removeDirectory } from './directories.ts';
import { querySql } from './sql.ts';

/** An empty, migrated database: its settings, and a function that drops it. */
export interface TestDatabase {
  env: { DATABASE_URL: string };
  drop(): Promise<void>;
}

type Undo = Pick<TestDatabase, 'drop'>;

/** The signing secret of all tests. */
export const TEST_SECRET = 'only-for-tests-only-for-tests-only';

/** Environment variable with the URL of the server of the tests. */
const SERVER = 'TEST_SERVER';
const silent = pino({ level: 'silent' });

/** Creates a migrated database on the server of the tests. */
export async function makeDatabase(name: string): Promise<TestDatabase> {
  const server = process.env[SERVER] ?? '';
  const url = new URL(server);
  url.pathname = `/${name}`;
  const drop = async () =>
    void (await querySql(server, `drop database if exists "${name}" with (force)`));
  await drop();
  await querySql(server, `create database "${name}"`);
  const env = { DATABASE_URL: url.href };
  await migrate(env);
  return { env, drop };
}

/**
 * Creates the data directory that later ones are copied from. Its database does not wait for the
 * disk, and has connections for the apps of many tests.
 */
export async function makeTemplate(): Promise<Undo> {
  const dataDir = await makeDataDir();
  const embedded = await startEmbedded(dataDir, silent);
  for (const setting of ['fsync = off', 'full_page_writes = off', 'max_connections = 300'])
    await querySql(embedded.adminUrl, `alter system set ${setting}`);
  await migrate({ DATA_DIR: dataDir });
  await embedded.stop();
  copyFrom(dataDir);
  return { drop: () => removeDirectory(dataDir) };
}

/** Chooses the server of the tests: that of TEST_DATABASE_URL, or an embedded database. */
export async function openServer(): Promise<Undo> {
  process.env[SERVER] = process.env['TEST_DATABASE_URL'] ?? '';
  if (process.env[SERVER]) return { drop: async () => undefined };
  const dataDir = await makeDataDir();
  const embedded = await startEmbedded(dataDir, silent);
  process.env[SERVER] = embedded.adminUrl;
  return {
    async drop() {
      await embedded.stop();
      await removeDirectory(dataDir);
    },
  };
}

async function migrate(env: Record<string, string>): Promise<void> {
  const config = readConfig({ ...env, SIGNING_SECRET: TEST_SECRET }, () => undefined);
  const database = await openDatabase(config, options, silent, true);
  await database.migrate();
  await database.fork().execute(MAKE_CLEAN);
  await database.close();
}
