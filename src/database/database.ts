import { MikroORM, type EntityManager, type Options } from '@mikro-orm/postgresql';
import type { ClientConfig } from 'pg';
import type { Logger } from 'pino';
import type { InBulk } from './copy.ts';
import type { Config } from '../core/config.ts';
import type { Statements } from './sql.ts';
import { openBulk } from './copy-transaction.ts';
import { startEmbedded, type Embedded } from './embedded/supervisor.ts';
import { lookAfter } from './pool-repair.ts';
import { Pulse, type OnChange } from './health-check.ts';
import { abilitiesOf, reachedAt } from './connection-options.ts';
import { openStatements } from './statements.ts';

/** An open database: PostgreSQL at DATABASE_URL, or the embedded default in DATA_DIR. */
export interface Database {
  orm: MikroORM;
  /** A new unit of work, whose statements are cancelled when the signal is aborted. */
  fork(signal?: AbortSignal): EntityManager;
  /** Single statements, outside any unit of work. */
  statements: Statements;
  /** Transactions for many rows at a time. */
  inBulk: InBulk;
  /** How many statements wait for a connection. */
  waiting(): number;
  /** How many connections of the pool there are, and how many of them nobody uses. */
  connections(): { open: number; idle: number };
  /** Resolves when the database answers, rejects when it does not; while it is watched, within 1.5 s. */
  ping(): Promise<void>;
  /** Rejects, naming them, where the database lacks migrations. */
  refusePending(): Promise<void>;
  /** Applies the migrations that the database lacks and returns their names. */
  migrate(): Promise<string[]>;
  /** False while the database does not answer, as far as `watch` has found. */
  readonly isAnswering: boolean;
  /** From now on it is looked whether the database answers, and this is told whenever that changes. */
  watch(onChange: OnChange): void;
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
  const pool = await orm.driver.getConnection().getNativeClient();
  const renew = lookAfter(pool);
  let pulse: Pulse | undefined;
  const isAnswering = () => pulse?.isBeating ?? true;
  let silence: NodeJS.Timeout | undefined;
  // Connections to the embedded database take each other's named statements, and share one backend, which nobody could ask to
  // stop before it has.
  const abilities = embedded ? { prepares: false, shared: 0, cancels: false } : abilitiesOf(config);
  const statements = openStatements(pool, reached, abilities, log);
  return {
    orm,
    fork: (signal) => orm.em.fork(signal && { signal, inflightQueryAbortStrategy: abilities.cancels ? 'cancel query' : 'ignore query' }),
    statements,
    // The embedded database's socket loses its place in the protocol over COPY.
    inBulk: openBulk(pool, !embedded),
    waiting: () => pool.waitingCount,
    connections: () => ({ open: pool.totalCount, idle: pool.idleCount }),
    async ping() {
      if (!pulse) await orm.em.fork().execute('select 1');
      else if (!(await pulse.next())) throw new Error('The database does not answer');
    },
    async refusePending() {
      const pending = await migrator.getPending();
      if (pending.length > 0)
        throw new Error(`The database lacks ${pending.map(({ name }) => name).join(', ')}. Apply with: npm run migrate`);
    },
    async migrate() {
      // This also makes the migrator's own table, which it does outside of any transaction.
      if ((await migrator.getPending()).length === 0) return [];
      return orm.em.fork().transactional(async (em) => {
        // A table that is rewritten takes longer than a request may.
        await em.execute('set local statement_timeout = 0');
        return (await migrator.up({ transaction: em.getTransactionContext() })).map(({ name }) => name);
      });
    },
    get isAnswering() {
      return isAnswering();
    },
    watch(onChange) {
      pulse ??= new Pulse(reached, log, (isBeating) => {
        clearInterval(silence);
        if (isBeating) {
          statements.renew();
          void renew();
        } else if (embedded) {
          // Nothing else ends a statement there: it knows no time limit, and cannot be cancelled.
          silence = setInterval(() => embedded.end(), config.statementTimeoutMs).unref();
        }
        onChange(isBeating);
      });
      pulse.start();
    },
    close: async () => {
      await pulse?.close();
      clearInterval(silence);
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
  return reachedAt(config, config.databaseUrl ?? '');
}
