import { MikroORM, type EntityManager, type Options } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Config } from '../kit/config.ts';
import { startEmbedded, type Embedded } from './embedded/supervisor.ts';

/** An open database: PostgreSQL at DATABASE_URL, or the embedded default in DATA_DIR. */
export interface Database {
  orm: MikroORM;
  /** A new unit of work. */
  fork(): EntityManager;
  /** Resolves when the database answers, rejects when it does not. */
  ping(): Promise<void>;
  /** Rejects, naming them, where the database lacks migrations. */
  refusePending(): Promise<void>;
  /** Applies the migrations that the database lacks and returns their names. */
  migrate(): Promise<string[]>;
  close(): Promise<void>;
}

const ACQUIRE_TIMEOUT_MS = 2_000;
const EMBEDDED_NAME = 'postgres';

/**
 * Opens the database that the configuration names. On the embedded default this starts its child process, or, with
 * `attach`, uses the one of a server that is running on the same data directory.
 */
export async function openDatabase(config: Config, options: Options, log: Logger, attach = false): Promise<Database> {
  const embedded = config.databaseUrl === undefined ? await startEmbedded(config.dataDir, log, attach) : undefined;
  const orm = new MikroORM({
    ...options,
    // By this name the migrator looks whether there is a database; the connection itself stands in driverOptions.
    dbName: databaseName(config),
    driverOptions: { ...connection(config, embedded), max: config.poolMax, connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS },
    logger: (message) => log.debug(message),
  });
  const migrator = orm.migrator;
  return {
    orm,
    fork: () => orm.em.fork(),
    ping: async () => void (await orm.em.fork().execute('select 1')),
    async refusePending() {
      const pending = await migrator.getPending();
      if (pending.length > 0)
        throw new Error(`The database lacks ${pending.map(({ name }) => name).join(', ')}. Apply with: npm run migrate`);
    },
    migrate: async () => (await migrator.up()).map(({ name }) => name),
    close: async () => {
      await orm.close();
      await embedded?.stop();
    },
  };
}

function databaseName({ databaseUrl }: Config): string {
  return databaseUrl === undefined ? EMBEDDED_NAME : decodeURIComponent(new URL(databaseUrl).pathname.slice(1)) || EMBEDDED_NAME;
}

function connection(config: Config, embedded: Embedded | undefined) {
  // All connections to the embedded database share one backend, where a time limit set by one would reach every other.
  if (embedded) return { host: embedded.socketDir, user: 'postgres', database: EMBEDDED_NAME };
  return { connectionString: config.databaseUrl, statement_timeout: config.statementTimeoutMs, application_name: 'shopfront' };
}
