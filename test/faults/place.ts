import { join } from 'node:path';
import { TEST_SECRET } from '../support/databases.ts';
import { barcodeOfN } from '../support/many-products.ts';
import { makeCluster, prepare, type Cluster } from '../support/postgresql.ts';
import { startServer, stopServer, type RunningServer } from '../support/process.ts';
import { querySql } from '../support/sql.ts';
import type { FaultContext } from './fault.ts';

/** Settings of PostgreSQL that minimize the effect of its disk writes on measurements. */
export const QUIET = {
  fsync: 'off',
  synchronous_commit: 'off',
  max_wal_size: '4GB',
  autovacuum_naptime: '10s',
};

/** The database of a shop server, with direct access. */
export interface ShopDatabase {
  /** The settings to start the server with. */
  env: Readonly<Record<string, string>>;
  /** Undefined on the embedded database. */
  cluster?: Cluster;
  /** Runs SQL directly. */
  sql: (text: string, values?: readonly unknown[]) => Promise<Record<string, unknown>[]>;
}

/**
 * Creates a database with demo data: a directory for the embedded one, or a PostgreSQL server with
 * these settings.
 */
export async function makeDatabase(
  context: FaultContext,
  settings: Readonly<Record<string, string>> = {},
): Promise<ShopDatabase> {
  if (context.on === 'embedded') {
    const dataDir = join(context.directory, 'data');
    const target = { host: dataDir, user: 'postgres', database: 'postgres' };
    return {
      env: { DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
      sql: (text, values) => querySql(target, text, values),
    };
  }
  const cluster = await openCluster(context, settings);
  return {
    env: { ...settingsFor(cluster), LOG_LEVEL: 'silent' },
    cluster,
    sql: (text, values) => querySql(cluster.url, text, values),
  };
}

/** Starts a PostgreSQL server with demo data, stopped at the end of the program. */
export async function openCluster(
  { directory, atEnd }: FaultContext,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const cluster = await makeCluster(join(directory, 'cluster'), settings);
  atEnd(() => cluster.stop('immediate'));
  await prepare(cluster, TEST_SECRET);
  return cluster;
}

/** The settings of a shop server on this database. */
export function settingsFor({ url }: Pick<Cluster, 'url'>): Record<string, string> {
  return { DATABASE_URL: url, SIGNING_SECRET: TEST_SECRET, HOST: '127.0.0.1' };
}

/** Starts a shop server, stopped at the end of the program. */
export async function startShop(
  { atEnd }: FaultContext,
  env: Readonly<Record<string, string>>,
): Promise<RunningServer> {
  const server = await startServer(env);
  atEnd(() => stopServer(server, 'SIGKILL'));
  return server;
}

/** Starts a shop server on a quiet database; a PostgreSQL server has this number of products. */
export async function startStocked(
  context: FaultContext,
  products: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<{ server: RunningServer; cluster: Cluster | undefined }> {
  const { cluster, env } = await makeDatabase(context, QUIET);
  if (cluster) await addProducts(cluster, products);
  return { cluster, server: await startShop(context, { ...env, ...settings }) };
}

/** The port that a server listens on. */
export function portOf({ url }: RunningServer): number {
  return Number(new URL(url).port);
}

/** Adds products up to this number, in the database. */
export async function addProducts(cluster: Cluster, upTo: number): Promise<void> {
  await cluster.sql(`
    insert into product (name, barcode, price, created_at, updated_at)
    select 'Product ' || n, ${barcodeOfN('400')}, round((n * 7919::bigint % 100000) / 100.0, 2), now(), now()
    from generate_series((select count(*) from product) + 1, ${upTo}) as n`);
  await cluster.sql('vacuum analyze');
}
