import { CompiledQuery, type Kysely } from 'kysely';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { ConstructorOptions, Db, JobWithMetadata, PgBoss } from 'pg-boss';
import type { Columns } from './kysely.ts';

// Jobs are rows of pg-boss, in its own schema of the same database. Its statements run on the pool
// of the ORM, or in a transaction of the ORM. It is not started, because it needs no timers of its
// own: the workers fetch jobs, and the sweep calls `supervise`.

/** A job that this instance has reserved for an attempt, until its `expireInSeconds`. */
export type Job<Data> = JobWithMetadata<Data>;

type Row<Data> = Omit<Job<Data>, 'startedOn' | 'output'> &
  Record<'startedOn', Date | null> &
  Record<'output', object | null>;

/** The table of jobs, for what the library has no function for. */
export type JobTable<Data> = Record<'pgboss.job', Columns<Row<Data>>>;

/** A unit of work and the log of its owner. */
interface Unit {
  em: EntityManager;
  log: Logger;
}

const libraries = new WeakMap<object, Promise<PgBoss>>();

/** Returns pg-boss on the pool of the database. */
export function jobsOf({ em, log }: Unit): Promise<PgBoss> {
  const connection = em.getConnection();
  const library = libraries.get(connection) ?? openLibrary(connection, log);
  libraries.set(connection, library);
  return library;
}

/** The option of pg-boss that runs a statement in the current transaction. */
export function inUnit(em: EntityManager): { db: Db } {
  return { db: executedBy(em.getKysely()) };
}

function executedBy(database: Kysely<unknown>): Db {
  return {
    executeSql: async (text, values = []) => database.executeQuery(CompiledQuery.raw(text, values)),
  };
}

/**
 * Creates or migrates the tables of pg-boss. A version of the library with other tables needs a
 * migration of ours, which may be empty: a test fails without.
 */
export async function migrateJobs({ em, log }: Unit): Promise<void> {
  const schemas = await em.getKysely().introspection.getSchemas();
  // A role that may not create schemas may not repeat the creation of one either.
  const createSchema = !schemas.some(({ name }) => name === 'pgboss');
  const library = await openLibrary(em.getConnection(), log, { createSchema });
  await library.start();
  await library.stop();
}

/**
 * Retries the jobs of processes that were lost, and deletes jobs whose time is over. Does so for all
 * instances at most once per interval. Returns 0, because the library does not tell their number.
 */
export async function superviseJobs(unit: Unit): Promise<number> {
  await (await jobsOf(unit)).supervise();
  return 0;
}

async function openLibrary(
  connection: ReturnType<EntityManager['getConnection']>,
  log: Logger,
  options: ConstructorOptions = {},
): Promise<PgBoss> {
  const { PgBoss: Library } = await import('pg-boss');
  const library = new Library({
    db: executedBy(connection.getClient()),
    // Minimum intervals between checks for expired jobs, and between deletions of old ones.
    monitorIntervalSeconds: 30,
    maintenanceIntervalSeconds: 3_600,
    supervise: false,
    schedule: false,
    registerInstance: false,
    monitorVacuum: false,
    reindex: false,
    openTelemetry: { enabled: false },
    ...options,
  });
  return library.on('error', (error) => log.error({ err: error }, 'Job maintenance failed'));
}
