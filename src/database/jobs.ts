import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { ConstructorOptions, Db, PgBoss } from 'pg-boss';
import { execute, sql } from './sql.ts';

// Jobs are rows of pg-boss, in its own schema of the same database. Its statements run on the pool
// of the ORM, or in a transaction of the ORM. It is not started, because it needs no timers of its
// own: the workers fetch jobs, and the sweep calls `supervise`.

/** Version of pg-boss's tables. A test compares it with the library. */
export const JOBS_VERSION = 46;
/** Minimum interval between checks for expired jobs, in s. */
const MONITOR_INTERVAL_S = 30;
/** Minimum interval between deletions of old jobs, in s. */
const DELETION_INTERVAL_S = 3_600;

/** A unit of work and the log of its owner. */
interface Unit {
  em: EntityManager;
  log: Logger;
}

const libraries = new WeakMap<object, Promise<PgBoss>>();

/** Returns pg-boss on the pool of the database. */
export function jobsOf({ em, log }: Unit): Promise<PgBoss> {
  const connection = em.getConnection();
  const existing = libraries.get(connection);
  if (existing) return existing;
  const opened = openLibrary(connection, log);
  libraries.set(connection, opened);
  return opened;
}

/** The option of pg-boss that runs a statement in the current transaction. */
export function inUnit(em: EntityManager): { db: Db } {
  return { db: { executeSql: (text, values = []) => execute(em, { text, values }) } };
}

/** Returns the version of pg-boss's tables, or undefined if there are none. */
export async function readJobsVersion(em: EntityManager): Promise<number | undefined> {
  const exists = await execute(em, sql`select to_regclass('pgboss.version') as name`);
  if (exists.rows[0]?.['name'] == null) return undefined;
  const { rows } = await execute(em, sql`select version from pgboss.version`);
  return Number(rows[0]?.['version']);
}

/** Creates or migrates the tables of pg-boss. */
export async function migrateJobs(unit: Unit): Promise<void> {
  if ((await readJobsVersion(unit.em)) === JOBS_VERSION) return;
  const { rows } = await execute(unit.em, sql`select to_regnamespace('pgboss') is null as value`);
  // A role that may not create schemas may not repeat the creation of one either.
  const createSchema = rows[0]?.['value'] === true;
  const library = await openLibrary(unit.em.getConnection(), unit.log, { createSchema });
  await library.start();
  await library.stop();
}

/**
 * Retries the jobs of processes that were lost, and deletes jobs whose time is over. Does so for all
 * instances at most once per interval. Returns 0, because the library does not tell their number.
 */
export async function superviseJobs(unit: Unit): Promise<number> {
  const { rows } = await execute(unit.em, sql`select 1 from pgboss.job limit 1`);
  // Many shops have no jobs, and the module takes 17 MiB.
  if (rows.length > 0) await (await jobsOf(unit)).supervise();
  return 0;
}

async function openLibrary(
  connection: ReturnType<EntityManager['getConnection']>,
  log: Logger,
  options: ConstructorOptions = {},
): Promise<PgBoss> {
  const { PgBoss: Library } = await import('pg-boss');
  const library = new Library({
    db: {
      // Without values, a text may contain several statements.
      executeSql: async (text, values = []) =>
        (await connection.getNativeClient()).query(text, values.length > 0 ? values : undefined),
    },
    monitorIntervalSeconds: MONITOR_INTERVAL_S,
    maintenanceIntervalSeconds: DELETION_INTERVAL_S,
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
