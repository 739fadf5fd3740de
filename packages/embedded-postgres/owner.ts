import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { isRunning } from './running.ts';

/** Another process uses the data directory. */
export class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';

  constructor(dataDir: string, pid: string) {
    super(
      `The data directory ${dataDir} is in use by process ${pid}. Stop it first, or set DATA_DIR to another directory.`,
    );
  }
}

// Prefix of the owner's name in pg_stat_activity, before its pid.
const NAME = 'shopfront owner ';
const RETRY_MS = 20;
/** Maximum time for a server that starts to listen, in ms; then its lock file is a leftover. */
const LISTEN_TIMEOUT_MS = 2_000;
/** Maximum time for the owner of a server to connect once it listens, in ms. */
const OWNER_TIMEOUT_MS = 2_000;
/** Maximum time for an abandoned server to exit, in ms. */
const EXIT_TIMEOUT_MS = 30_000;

/** Marks this process as the owner of the server at this URL, until the connection ends. */
export function connectAsOwner(url: string): Promise<pg.Client> {
  return connect(url, NAME + process.pid);
}

/** Returns the pid of the server of the cluster in this directory, if it is running. */
export function runningServerOf(cluster: string): number | undefined {
  const pid = Number(readLockFile(cluster)[0]);
  return pid > 0 && isRunning(pid) ? pid : undefined;
}

/** Returns whether the server of the cluster in this directory has this pid and is ready. */
export function isReady(cluster: string, pid: number): boolean {
  const lines = readLockFile(cluster);
  return Number(lines[0]) === pid && lines[7]?.trim() === 'ready';
}

/**
 * Stops the server that runs on this cluster if the process that started it is gone. Removes a lock
 * file whose pid now belongs to another program. Throws DataDirInUse if the server has an owner.
 */
export async function displaceAbandoned(
  dataDir: string,
  cluster: string,
  url: string,
): Promise<void> {
  const pid = runningServerOf(cluster);
  if (pid === undefined) return;
  const client = await connectWhileStarting(url, cluster, pid);
  if (!client) return;
  try {
    const owner = await findOwner(client);
    if (owner !== undefined) throw new DataDirInUse(dataDir, owner);
  } finally {
    await client.end().catch(() => undefined);
  }
  await stopServer(pid);
}

// The owner may have started the server just now, and not have connected yet.
async function findOwner(client: pg.Client): Promise<string | undefined> {
  const deadline = performance.now() + OWNER_TIMEOUT_MS;
  do {
    const { rows } = await client.query<{ name: string }>(
      `select application_name as name from pg_stat_activity where starts_with(application_name, '${NAME}')`,
    );
    if (rows[0]) return rows[0].name.slice(NAME.length);
    await setTimeout(RETRY_MS);
  } while (performance.now() < deadline);
  return undefined;
}

async function connectWhileStarting(
  url: string,
  cluster: string,
  pid: number,
): Promise<pg.Client | undefined> {
  let deadline = performance.now() + LISTEN_TIMEOUT_MS;
  while (runningServerOf(cluster) === pid) {
    try {
      return await connect(url, 'shopfront');
    } catch (error) {
      // It is starting or stopping (57P03), which takes as long as it takes.
      if (codeOf(error) === '57P03') deadline = performance.now() + LISTEN_TIMEOUT_MS;
      if (performance.now() > deadline) {
        rmSync(join(cluster, 'postmaster.pid'), { force: true });
        return undefined;
      }
    }
    await setTimeout(RETRY_MS);
  }
  return undefined;
}

/** Stops the server with this pid. Its clients lose their connections. */
export async function stopServer(pid: number): Promise<void> {
  const deadline = performance.now() + EXIT_TIMEOUT_MS;
  process.kill(pid, 'SIGINT');
  while (isRunning(pid)) {
    if (performance.now() > deadline) throw new Error(`The database process ${pid} does not exit`);
    await setTimeout(RETRY_MS);
  }
}

async function connect(url: string, name: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: name });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

function readLockFile(cluster: string): string[] {
  try {
    return readFileSync(join(cluster, 'postmaster.pid'), 'utf8').split('\n');
  } catch {
    return [];
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
