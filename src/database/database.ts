import { MikroORM, type EntityManager, type Options } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import type { Logger } from 'pino';
import { startEmbedded } from '../../packages/embedded-postgres/index.ts';
import { withTimeLimit, type Abortable } from '../core/abort.ts';
import type { Config } from '../core/config.ts';
import { counter, gauge } from '../core/metrics.ts';
import type { Statements } from './sql.ts';
import { migrateJobs } from './jobs.ts';
import { HealthCheck, type OnChange } from './health-check.ts';
import { HotReads } from './hot-reads.ts';
import { ConnectionPool } from './pool.ts';

/** An open database: PostgreSQL at DATABASE_URL, or the embedded default in DATA_DIR. */
export interface Database {
  orm: MikroORM;
  /** Returns a new unit of work. Aborting the signal cancels its statements. */
  fork(signal?: AbortSignal): EntityManager;
  /** Single statements outside a unit of work. */
  statements: Statements;
  /** Reads of the replica, if there is one. If it fails, they run on the primary. */
  replica?: Statements;
  /** Returns the numbers of open and idle connections, and of statements that wait for one. */
  connections(): { open: number; idle: number; waiting: number };
  /** Rejects if the database does not respond: within 1.5 s, once `watch` was called. */
  ping(): Promise<void>;
  /** Rejects with the names of the missing migrations, if there are any. */
  rejectPendingMigrations(): Promise<void>;
  /** Applies the missing migrations and returns their names. */
  migrate(): Promise<string[]>;
  /** Starts the health check. Calls `onChange` on each change. */
  watch(onChange: OnChange): void;
  close(): Promise<void>;
}

/** Maximum duration of a statement on a replica, in ms. */
const REPLICA_TIMEOUT_MS = 3_000;
/** Time until a failed replica is tried again, in ms. */
const REPLICA_PAUSE_MS = 5_000;
/** Maximum wait of a migration for a lock. Requests for the table wait behind it. */
const LOCK_TIMEOUT = '2s';

const restarts = counter(
  'shopfront_embedded_restarts_total',
  'Restarts of the embedded database after its process exited unexpectedly.',
);

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
    config.databaseUrl === undefined
      ? await startEmbedded(config.dataDir, log, { attach, onRestart: () => restarts.value++ })
      : undefined;
  const url = embedded?.url ?? config.databaseUrl ?? '';
  const clientConfig = connectionOptions(config, url);
  const { pool, statements } = openPool(config, clientConfig);
  const orm = new MikroORM({
    ...options,
    // Connections use driverOptions. The migrator checks whether this database exists.
    dbName: 'template1',
    driverOptions: pool.dialect(),
    logger: (message) => log.debug(message),
  });
  // A pooler connects each statement to the current server.
  const mayMove = !embedded && config.databasePooler === 'none';
  const healthCheck = new HealthCheck(clientConfig, mayMove, log);
  const { databaseReplicaUrl } = config;
  const replica =
    databaseReplicaUrl === undefined
      ? undefined
      : openReplica(config, databaseReplicaUrl, statements);
  return {
    orm,
    ...(replica && { replica }),
    fork: (signal) => orm.em.fork(signal && { signal, inflightQueryAbortStrategy: 'cancel query' }),
    statements,
    connections: () => pool.counts,
    async ping() {
      if (healthCheck.isRunning) {
        if (!healthCheck.isHealthy) throw new Error('The database does not respond');
      } else {
        await orm.em.fork().execute('select 1');
      }
    },
    async rejectPendingMigrations() {
      const pending = (await orm.migrator.getPending()).map(({ name }) => name);
      if (pending.length > 0)
        throw new Error(`The database lacks ${pending.join(', ')}. Apply with: npm run migrate`);
    },
    async migrate() {
      const { migrator } = orm;
      // This also creates the migrator's own table, outside of any transaction.
      if ((await migrator.getPending()).length === 0) return [];
      await migrateJobs({ em: orm.em.fork(), log });
      const applied = await orm.em.fork().transactional(async (em) => {
        // Building an index takes longer than a request may.
        const limits = `set local statement_timeout = 0; set local lock_timeout = '${LOCK_TIMEOUT}'`;
        await em.execute(limits);
        return migrator.up({ transaction: em.getTransactionContext() });
      });
      return applied.map(({ name }) => name);
    },
    watch(onChange) {
      healthCheck.start((isHealthy, hasMoved) => {
        if (isHealthy) {
          statements.renew();
          void pool.renew(hasMoved);
        }
        onChange(isHealthy, hasMoved);
      });
    },
    close: async () => {
      await healthCheck.close();
      await replica?.close();
      statements.close();
      await orm.close();
      await pool.close();
      await embedded?.stop();
    },
  };
}

function connectionOptions(config: Config, connectionString: string): ClientConfig {
  return {
    connectionString,
    application_name: 'shopfront',
    // Detects a peer that is gone on an idle connection.
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    // A pooler shares existing connections and rejects connections with further parameters.
    ...(config.databasePooler === 'none' && {
      statement_timeout: config.databaseStatementTimeoutMs,
      // Compilation takes 50 ms, and no statement runs long enough to save that. In the default of
      // 4 MB, two words of millions of products each are pages whose rows are all read.
      options: '-c jit=off -c work_mem=16MB',
    }),
  };
}

function openPool(config: Config, clientConfig: ClientConfig) {
  const { databasePoolMax: max, databaseAcquireTimeoutMs: connectionTimeoutMillis } = config;
  const canPrepare = config.databasePooler === 'none';
  const pool = new ConnectionPool({ ...clientConfig, max, connectionTimeoutMillis }, canPrepare);
  return { pool, statements: new HotReads(pool, canPrepare && config.databasePipeline) };
}

/**
 * Opens the reads of the server at this URL. If a read fails, it runs on the primary, as do all
 * reads of the next seconds. Then one read tries the replica.
 */
function openReplica(
  config: Config,
  url: string,
  primary: Statements,
): Statements & { close(): Promise<void> } {
  const { pool, statements } = openPool(config, connectionOptions(config, url));
  const timeoutMs = Math.min(REPLICA_TIMEOUT_MS, config.databaseStatementTimeoutMs / 2);
  /** When a read may try the replica. 0 while the replica works. */
  let pausedUntil = 0;
  gauge('shopfront_replica_usable', 'Whether reads use the replica: 1 or 0.', () =>
    Number(pausedUntil === 0),
  );
  const tryReplica = async (...[statement, prepared, request]: Parameters<Statements['read']>) => {
    const now = performance.now();
    if (now < pausedUntil) return undefined;
    if (pausedUntil > 0) pausedUntil = now + REPLICA_PAUSE_MS;
    const read = (part: Abortable) => statements.read(statement, prepared, part);
    const rows = await withTimeLimit(request, timeoutMs, read).catch(() => undefined);
    request?.signal.throwIfAborted();
    pausedUntil = rows ? 0 : performance.now() + REPLICA_PAUSE_MS;
    if (!rows) void pool.renew();
    return rows;
  };
  return {
    // A replica commits nothing.
    commits: 0,
    read: async (...args) => (await tryReplica(...args)) ?? primary.read(...args),
    close: () => {
      statements.close();
      return pool.close();
    },
  };
}
