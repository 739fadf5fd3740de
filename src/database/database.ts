import { MikroORM, type EntityManager, type Options } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { RunCopyTransaction } from './copy.ts';
import type { Config } from '../core/config.ts';
import { databaseUrlsOf } from '../core/database-urls.ts';
import type { Statements } from './sql.ts';
import { createCopyTransactions } from './copy-transaction.ts';
import { startEmbedded } from './embedded/postgresql.ts';
import { JOBS_VERSION, migrateJobs, readJobsVersion } from './jobs.ts';
import { repairPool } from './pool-repair.ts';
import { HealthCheck, type OnChange } from './health-check.ts';
import { capabilitiesOf, connectionOptions } from './connection-options.ts';
import { openStatements } from './statements.ts';

/** An open database: PostgreSQL at DATABASE_URL, or the embedded default in DATA_DIR. */
export interface Database {
  orm: MikroORM;
  /** Returns a new unit of work. Aborting the signal cancels its statements. */
  fork(signal?: AbortSignal): EntityManager;
  /** Single statements outside a unit of work. */
  statements: Statements;
  /** Runs a transaction that writes many rows at a time. */
  inCopyTransaction: RunCopyTransaction;
  /** Returns the number of statements that wait for a connection. */
  waiting(): number;
  /** Returns the numbers of open and of idle connections of the pool. */
  connections(): { open: number; idle: number };
  /** Rejects if the database does not respond: within 1.5 s, once `watch` was called. */
  ping(): Promise<void>;
  /** Rejects with the names of the missing migrations, if there are any. */
  rejectPendingMigrations(): Promise<void>;
  /** Applies the missing migrations and returns their names. */
  migrate(): Promise<string[]>;
  /** False while the health check finds the database down. */
  readonly isHealthy: boolean;
  /** Starts the health check. Calls `onChange` on each change. */
  watch(onChange: OnChange): void;
  close(): Promise<void>;
}

const ACQUIRE_TIMEOUT_MS = 2_000;
/** Maximum wait of a migration for a lock. Requests for the table wait behind it. */
const LOCK_TIMEOUT = '2s';
/** PostgreSQL, appendix A. */
const LOCK_NOT_AVAILABLE = '55P03';

/**
 * Opens the configured database. Starts the embedded one, or, with `attach`, uses that of a server
 * that runs on the same data directory.
 */
export async function openDatabase(
  config: Config,
  options: Options,
  log: Logger,
  attach = false,
): Promise<Database> {
  const embedded =
    config.databaseUrl === undefined ? await startEmbedded(config.dataDir, log, attach) : undefined;
  const urls = embedded ? [embedded.url] : databaseUrlsOf(config.databaseUrl ?? '');
  const clientConfig = connectionOptions(config, urls[0] ?? '');
  const orm = new MikroORM({
    ...options,
    // Connections use driverOptions. See openMigrator.
    dbName: 'postgres',
    driverOptions: {
      ...clientConfig,
      max: config.databasePoolMax,
      connectionTimeoutMillis: ACQUIRE_TIMEOUT_MS,
    },
    logger: (message) => log.debug(message),
  });
  // The migrator creates a database of the configured name if there is none. Behind a pooler, the
  // name in the URL may be another.
  const openMigrator = async () => {
    const [row] = await orm.em
      .fork()
      .execute<{ name: string }[]>('select current_database() as name');
    if (row) orm.config.set('dbName', row.name);
    return orm.migrator;
  };
  const pool = await orm.driver.getConnection().getNativeClient();
  const renew = repairPool(pool);
  const healthCheck = new HealthCheck({
    config: clientConfig,
    urls,
    // A pooler connects each statement to the current server.
    mayMove: !embedded && (config.databasePooler === 'none' || urls.length > 1),
    // Connections that are opened later lead to this host.
    onHost: (url) => {
      for (const used of [clientConfig, pool.options]) used.connectionString = url;
    },
    log,
  });
  // Without a primary, each use of the database fails.
  await healthCheck.locate().catch(() => undefined);
  const statements = openStatements(pool, clientConfig, capabilitiesOf(config), log);
  return {
    orm,
    fork: (signal) => orm.em.fork(signal && { signal, inflightQueryAbortStrategy: 'cancel query' }),
    statements,
    inCopyTransaction: createCopyTransactions(pool),
    waiting: () => pool.waitingCount,
    connections: () => ({ open: pool.totalCount, idle: pool.idleCount }),
    async ping() {
      if (healthCheck.isRunning) {
        if (!(await healthCheck.next())) throw new Error('The database does not respond');
        return;
      }
      await healthCheck.locate();
      await orm.em.fork().execute('select 1');
    },
    async rejectPendingMigrations() {
      const pending = (await (await openMigrator()).getPending()).map(({ name }) => name);
      if ((await readJobsVersion(orm.em.fork())) !== JOBS_VERSION) pending.push('tables of jobs');
      if (pending.length > 0)
        throw new Error(`The database lacks ${pending.join(', ')}. Apply with: npm run migrate`);
    },
    async migrate() {
      const migrator = await openMigrator();
      await migrateJobs({ em: orm.em.fork(), log });
      // This also creates the migrator's own table, outside of any transaction.
      if ((await migrator.getPending()).length === 0) return [];
      // Tables of the same names would make a migration fail with an error about one of them.
      const known = new Set(options.migrations?.migrationsList?.map(({ name }) => name));
      const other = (await migrator.getExecuted()).find(({ name }) => !known.has(name));
      if (other)
        throw new Error(
          `The database is of another version, with the migration ${other.name}. Use that version or a new database`,
        );
      return orm.em
        .fork()
        .transactional(async (em) => {
          // Building an index takes longer than a request may.
          await em.execute(
            `set local statement_timeout = 0; set local lock_timeout = '${LOCK_TIMEOUT}'`,
          );
          return (await migrator.up({ transaction: em.getTransactionContext() })).map(
            ({ name }) => name,
          );
        })
        .catch((error: Error) => {
          if (!('code' in error) || error.code !== LOCK_NOT_AVAILABLE) throw error;
          throw new Error(
            `Another transaction holds a lock that a migration needs, for more than ${LOCK_TIMEOUT}. Nothing was changed. Try again, or end that transaction (pg_stat_activity)`,
            { cause: error },
          );
        });
    },
    get isHealthy() {
      return healthCheck.isHealthy;
    },
    watch(onChange) {
      const onHealthChange: OnChange = (isHealthy, hasMoved) => {
        if (isHealthy) {
          statements.renew();
          void renew(hasMoved);
        }
        onChange(isHealthy, hasMoved);
      };
      healthCheck.start(onHealthChange);
    },
    close: async () => {
      await healthCheck.close();
      await statements.close();
      await orm.close();
      await embedded?.stop();
    },
  };
}
