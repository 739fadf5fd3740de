import { expect, test } from '../support/jest.ts';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  binaries,
  makeCluster,
  ownedDirectory,
  systemUser,
  type Cluster,
} from '../support/postgresql.ts';
import { freePort } from '../support/process.ts';
import { querySql } from '../support/sql.ts';
import { until } from '../support/until.ts';

const execute = promisify(execFile);
const PASSWORD = `it's "quoted" $and \\so on`;

test('the scripts of docker-compose.yml create a streaming replica, also after an interrupted copy and after a restart', async () => {
  const home = await mkdtemp(join(tmpdir(), 'shopfront-replica-'));
  await ownedDirectory(home);
  const primary = await makeCluster(join(home, 'primary'));
  const replicas: ChildProcess[] = [];
  try {
    await preparePrimary(primary, home);
    await primary.sql('create table seen (pk int)');
    const PGDATA = join(home, 'replica');
    await ownedDirectory(PGDATA);
    await writeFile(join(PGDATA, 'half'), 'of a copy');
    for (const pk of [1, 2]) {
      const port = await freePort();
      const replica = await startReplica(primary, home, { PGDATA }, port);
      replicas.push(replica);
      await primary.sql(`insert into seen values (${pk})`);
      await until(async () => (await seenAt(port)) === pk);
      expect(replica.exitCode).toBe(null);
      replica.kill('SIGINT');
      await once(replica, 'exit');
    }
  } finally {
    for (const replica of replicas) replica.kill('SIGKILL');
    await primary.stop('immediate');
    await rm(home, { recursive: true, force: true });
  }
}, 120_000);

// Like the PostgreSQL image: runs the script once, then restarts.
async function preparePrimary(primary: Cluster, home: string): Promise<void> {
  const env = {
    PGDATA: primary.dataDir,
    POSTGRES_USER: 'postgres',
    POSTGRES_DB: 'shopfront',
    POSTGRES_PASSWORD: PASSWORD,
  };
  await execute('bash', [await readableCopy('primary.sh', home)], {
    ...(await systemUser()),
    env: { PATH: await path(), PGHOST: '127.0.0.1', PGPORT: String(primary.port), ...env },
  });
  expect(await readFile(join(primary.dataDir, 'pg_hba.conf'), 'utf8')).toMatch(
    /\nhost replication replica samenet scram-sha-256\n$/,
  );
  expect(
    await primary.sql(
      `select rolreplication, rolsuper, rolpassword like 'SCRAM-SHA-256$%' as hashed from pg_authid where rolname = 'replica'`,
    ),
  ).toEqual([{ rolreplication: true, rolsuper: false, hashed: true }]);
  // Removes the trust rules of test servers, so that the replica needs its password.
  await writeFile(
    join(primary.dataDir, 'pg_hba.conf'),
    'host all postgres samehost trust\nhost replication replica samenet scram-sha-256\n',
  );
  await primary.stop();
  await primary.start();
}

async function startReplica(
  primary: Cluster,
  home: string,
  env: Record<string, string>,
  port: number,
): Promise<ChildProcess> {
  const own = [
    '-p',
    String(port),
    '-c',
    'listen_addresses=127.0.0.1',
    '-c',
    `unix_socket_directories=${join(home, 'primary')}`,
  ];
  const PGPASSWORD_FILE = join(home, 'password');
  await writeFile(PGPASSWORD_FILE, PASSWORD);
  return spawn('bash', [await readableCopy('replica.sh', home), ...own], {
    ...(await systemUser()),
    cwd: tmpdir(),
    stdio: 'ignore',
    env: {
      PATH: await path(),
      PGHOST: '127.0.0.1',
      PGPORT: String(primary.port),
      PGPASSWORD_FILE,
      ...env,
    },
  });
}

// Copies the script to a directory that the server's user can read.
async function readableCopy(name: string, home: string): Promise<string> {
  const copy = join(home, 'primary', name);
  await cp(join('deploy/compose', name), copy);
  return copy;
}

async function path(): Promise<string> {
  return `${await binaries()}:${process.env['PATH'] ?? ''}`;
}

// Returns the latest row on the replica; undefined while it is not reachable.
async function seenAt(port: number): Promise<number | undefined> {
  const url = `postgresql://postgres@127.0.0.1:${port}/shopfront`;
  const [row] = await querySql(
    url,
    'select max(pk) as pk, pg_is_in_recovery() as standby from seen',
  ).catch(() => []);
  if (!row) return undefined;
  expect(row['standby']).toBe(true);
  return Number(row['pk']);
}
