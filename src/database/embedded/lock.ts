import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { access } from './directory.ts';

/** Another process uses the data directory. */
class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';

  constructor(
    dataDir: string,
    readonly server: number,
  ) {
    super(
      `The data directory ${dataDir} is in use by process ${server}. Stop it first, or set DATA_DIR to another directory.`,
    );
  }
}

/** A process, identified by its id and start, because the system reuses ids. */
interface Process {
  pid: number;
  /** Result of `startOf`. */
  started: string;
}

interface Holder {
  /** The database process, which has the files open. */
  child: Process;
  /** The parent of the database process. */
  server: Process;
}

const LOCK = 'lock';
/** Maximum time for the database process of a killed server to exit, in ms. */
const EXIT_TIMEOUT_MS = 5_000;
const RETRY_MS = 20;

/**
 * Throws DataDirInUse if another server uses the data directory. This is only a cheap early check:
 * `lockDataDir` decides.
 */
export function rejectIfLocked(dataDir: string): void {
  const holder = readHolder(join(dataDir, LOCK));
  if (holder && holder.server.pid !== process.pid && isRunning(holder.server))
    throw new DataDirInUse(dataDir, holder.server.pid);
}

/**
 * Locks the data directory for a database process of this server, or throws DataDirInUse. PGlite
 * has no lock, and two processes on one directory lose rows silently. A server retains its lock
 * while it has no database process. If the server of a lock is gone, its database process is killed
 * and the lock replaced. Returns a function that releases the lock.
 */
export async function lockDataDir(dataDir: string, pid: number): Promise<() => void> {
  const path = join(dataDir, LOCK);
  const ownPath = `${path}.${process.pid}`;
  const server: Process = { pid: process.pid, started: startOf(process.pid) };
  const holder: Holder = { child: { pid, started: startOf(pid) }, server };
  const deadline = Date.now() + EXIT_TIMEOUT_MS;
  try {
    access(ownPath, () => writeFileSync(ownPath, JSON.stringify(holder)));
    // Only one process can create the hard link, and the file is complete from the start.
    while (!tryLink(ownPath, path)) {
      const other = readHolder(path);
      const isOurs = other?.server.pid === server.pid && other.server.started === server.started;
      if (other && !isOurs && isRunning(other.server))
        throw new DataDirInUse(dataDir, other.server.pid);
      if (isOurs && !isRunning(other.child)) {
        // The lock exists at all times: no other process removes the lock of a running server.
        renameSync(ownPath, path);
        break;
      }
      if (!other || !isRunning(other.child)) removeStale(path);
      else if (isOurs || Date.now() > deadline) throw new DataDirInUse(dataDir, other.server.pid);
      else {
        // It would exit soon, but for a long statement. What it has acknowledged is on disk.
        kill(other.child.pid);
        await setTimeout(RETRY_MS);
      }
    }
  } finally {
    rmSync(ownPath, { force: true });
  }
  return () => {
    if (readHolder(path)?.child.pid === pid) rmSync(path, { force: true });
  };
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!isCode(error, 'ESRCH')) throw error;
  }
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

// Renames first: of several processes that found the same stale lock one removes it, and none
// removes a new lock unchecked.
function removeStale(path: string): void {
  const stalePath = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, stalePath);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  const renamed = readHolder(stalePath);
  if (renamed && isRunning(renamed.child)) tryLink(stalePath, path);
  rmSync(stalePath, { force: true });
}

function readHolder(path: string): Holder | undefined {
  try {
    const { child, server } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder>;
    return isProcess(child) && isProcess(server) ? { child, server } : undefined;
  } catch {
    return undefined; // missing, or truncated by a full disk: there is no lock
  }
}

function isProcess(value: unknown): value is Process {
  return (
    typeof value === 'object' &&
    value !== null &&
    'pid' in value &&
    'started' in value &&
    typeof value.pid === 'number'
  );
}

function isRunning({ pid, started }: Process): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return isCode(error, 'EPERM');
  }
  return startOf(pid) === started;
}

/**
 * Returns the start of the process in clock ticks since boot, with the boot id; an empty string
 * where the system does not provide them (proc(5)).
 */
function startOf(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ');
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields?.[19]}`;
  } catch {
    return '';
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
