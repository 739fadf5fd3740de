import { MikroORM, type EntityManager, type Options } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import type { Logger } from 'pino';
import type { Config } from '../kit/config.ts';
import type { Statements } from '../kit/sql.ts';
import { startEmbedded, type Embedded } from './embedded/supervisor.ts';
import { openStatements } from './statements.ts';

/** An open database: PostgreSQL at DATABASE_URL, or the embedded default in DATA_DIR. */
export interface Database {
  orm: MikroORM;
  /** A new unit of work, whose statements are cancelled when the signal is aborted. */
  fork(signal?: AbortSignal): EntityManager;
  /** Single statements, outside any unit of work. */
  statements: Statements;
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
  const reached = connection(config, embedded);
  const orm = new MikroORM({
    ...options,
    // By this name the migrator looks whether there is a database; the connection itself stands in driverOptions.
    dbName: databaseName(config),
    driverOptions: { ...reached, max: config.poolMax, connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS },
    logger: (message) => log.debug(message),
  });
  const migrator = orm.migrator;
  const statements = openStatements(
    await orm.driver.getConnection().getNativeClient(),
    reached,
    // Connections to the embedded database take each other's named statements.
    embedded
      ? { prepares: false, shared: 0, cancels: false }
      : { prepares: config.preparedStatements, shared: config.sharedConnections, cancels: true },
    log,
  );
  return {
    orm,
    // On the embedded database all share one backend, which nobody could ask to stop before it has.
    fork: (signal) => orm.em.fork(signal && { signal, inflightQueryAbortStrategy: embedded ? 'ignore query' : 'cancel query' }),
    statements,
    ping: async () => void (await orm.em.fork().execute('select 1')),
    async refusePending() {
      const pending = await migrator.getPending();
      if (pending.length > 0)
        throw new Error(`The database lacks ${pending.map(({ name }) => name).join(', ')}. Apply with: npm run migrate`);
    },
    migrate: async () => (await migrator.up()).map(({ name }) => name),
    close: async () => {
      await statements.close();
      await orm.close();
      await embedded?.stop();
    },
  };
}

function databaseName({ databaseUrl }: Config): string {
  return databaseUrl === undefined ? EMBEDDED_NAME : decodeURIComponent(new URL(databaseUrl).pathname.slice(1)) || EMBEDDED_NAME;
}

function connection(config: Config, embedded: Embedded | undefined): ClientConfig {
  // All connections to the embedded database share one backend, where a time limit set by one would reach every other.
  if (embedded) return { host: embedded.socketDir, user: 'postgres', database: EMBEDDED_NAME };
  return {
    ...(config.databaseUrl !== undefined && { connectionString: config.databaseUrl }),
    statement_timeout: config.statementTimeoutMs,
    application_name: 'shopfront',
  };
}
