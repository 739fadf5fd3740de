import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { globSync } from 'node:fs';
import { appendFile, chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { command } from './command.ts';
import { endProcess, freePort } from './process.ts';
import { querySql } from './sql.ts';
import { until } from './until.ts';

const execute = promisify(execFile);

const SYSTEM_USER = 'postgres';
/** The database of the tests. */
const DATABASE = 'shopfront';

/** Shutdown modes: after its clients, at once, or as in a power failure (pg_ctl(1)). */
const STOPS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

/** A PostgreSQL server of one test, which may stop, freeze and kill it. */
export interface Cluster {
  port: number;
  dataDir: string;
  /** URL of its database, as a superuser. */
  url: string;
  /** Its main process; undefined while it is stopped. */
  pid(): number | undefined;
  start(): Promise<void>;
  stop(how?: keyof typeof STOPS): Promise<void>;
  /** Sends a signal, such as SIGSTOP, to all its processes. */
  signal(signal: NodeJS.Signals): Promise<void>;
  /** Runs one statement as a superuser. */
  sql(text: string): Promise<Record<string, unknown>[]>;
}

/** Creates a server in the directory, with these lines in its postgresql.conf, and starts it. */
export async function makeCluster(
  directory: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const dataDir = join(directory, 'postgresql');
  await ownedDirectory(directory);
  await tool('initdb', [
    '-D',
    dataDir,
    '-U',
    'postgres',
    '--auth',
    'trust',
    '--encoding',
    'UTF8',
    '--locale',
    'C.UTF-8',
    '--no-sync',
  ]);
  const cluster = await clusterAt(dataDir, directory, settings);
  await cluster.start();
  await querySql(urlOf(cluster.port, 'postgres'), `create database ${DATABASE}`);
  return cluster;
}

/** Creates a streaming standby of the server by pg_basebackup in this directory, and starts it. */
export async function makeStandby(
  of: Cluster,
  directory: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Cluster> {
  const dataDir = join(directory, 'postgresql');
  await ownedDirectory(directory);
  await tool('pg_basebackup', [
    '-D',
    dataDir,
    '-h',
    '127.0.0.1',
    '-p',
    String(of.port),
    '-U',
    'postgres',
    '-R',
    '-X',
    'stream',
    '-c',
    'fast',
  ]);
  const standby = await clusterAt(dataDir, directory, settings);
  await standby.start();
  return standby;
}

/** Starts a stopped server as a streaming standby of another. */
export async function restartAsStandby(cluster: Cluster, of: Cluster): Promise<void> {
  await writeFile(join(cluster.dataDir, 'standby.signal'), '');
  const source = `host=127.0.0.1 port=${of.port} user=postgres`;
  await appendFile(
    join(cluster.dataDir, 'postgresql.conf'),
    `primary_conninfo = '${source}'\nrecovery_target_timeline = 'latest'\n`,
  );
  await cluster.start();
}

/** Applies the migrations and, optionally, the demo data, by the CLI. */
export async function prepare(
  { url }: Pick<Cluster, 'url'>,
  secret: string,
  seed = true,
): Promise<void> {
  for (const name of seed ? ['migrate', 'seed'] : ['migrate']) {
    const { code, stderr } = await command([name], { DATABASE_URL: url, SIGNING_SECRET: secret });
    if (code !== 0) throw new Error(`${name}: ${stderr}`);
  }
}

async function clusterAt(
  dataDir: string,
  socketDir: string,
  settings: Readonly<Record<string, string>>,
): Promise<Cluster> {
  const port = await freePort();
  const lines = Object.entries({
    listen_addresses: '127.0.0.1',
    unix_socket_directories: socketDir,
    ...settings,
    port: String(port),
  });
  await appendFile(
    join(dataDir, 'postgresql.conf'),
    lines.map(([name, value]) => `${name} = '${value}'\n`).join(''),
  );
  const url = urlOf(port, DATABASE);
  let running: ChildProcess | undefined;
  return {
    port,
    dataDir,
    url,
    pid: () => running?.pid,
    async start() {
      running = spawn(join(await binaries(), 'postgres'), ['-D', dataDir], {
        ...(await systemUser()),
        stdio: 'ignore',
      });
      await until(async () => {
        if (running?.exitCode !== null)
          throw new Error(`PostgreSQL exited with ${running?.exitCode}`);
        return querySql(urlOf(port, 'postgres'), 'select').then(
          () => true,
          () => false,
        );
      });
    },
    async stop(how = 'fast') {
      const stopped = running;
      running = undefined;
      await endProcess(stopped, STOPS[how]);
    },
    async signal(signal) {
      const { pid } = running ?? {};
      if (pid === undefined) throw new Error('PostgreSQL is not running');
      const { stdout } = await execute('ps', ['-o', 'pid=', '--ppid', String(pid)]).catch(() => ({
        stdout: '',
      }));
      for (const each of [pid, ...stdout.split('\n').filter(Boolean).map(Number)])
        process.kill(each, signal);
    },
    sql: (text) => querySql(url, text),
  };
}

function urlOf(port: number, database: string): string {
  return `postgresql://postgres@127.0.0.1:${port}/${database}`;
}

async function tool(name: string, args: readonly string[]): Promise<void> {
  await execute(join(await binaries(), name), args, await systemUser());
}

/** Creates a directory that belongs to the server's user. */
export async function ownedDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const { uid, gid } = await systemUser();
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid);
}

/** The directory of PostgreSQL's programs, which Debian does not add to PATH. */
export async function binaries(): Promise<string> {
  const [newest] = globSync('/usr/lib/postgresql/*/bin').toSorted((a, b) =>
    b.localeCompare(a, 'en', { numeric: true }),
  );
  if (newest !== undefined) return newest;
  const { stdout } = await execute('pg_config', ['--bindir']);
  return stdout.trim();
}

/**
 * The user that a server runs as: the current one, unless that is root, which PostgreSQL rejects.
 */
export async function systemUser(): Promise<{ uid?: number; gid?: number }> {
  if (process.getuid?.() !== 0) return {};
  const [uid, gid] = await Promise.all(
    ['-u', '-g'].map(async (flag) => Number((await execute('id', [flag, SYSTEM_USER])).stdout)),
  );
  return { uid: uid ?? 0, gid: gid ?? 0 };
}
