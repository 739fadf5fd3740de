import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { usable } from './directory.ts';

/** Another process uses the data directory. */
class DataDirInUse extends Error {
  override readonly name = 'DataDirInUse';

  constructor(
    dataDir: string,
    readonly server: number,
  ) {
    super(`The data directory ${dataDir} is in use by process ${server}. Stop it first, or set DATA_DIR to another directory.`);
  }
}

/** A process, by its number and by when it started, so that a number used again is not taken for the one that had it before. */
interface Process {
  pid: number;
  /** By the system's count; empty where it does not tell. */
  started: string;
}

interface Holder {
  /** The process that has the files open. */
  child: Process;
  /** The process that it works for. */
  server: Process;
}

const LOCK = 'lock';
/** How long the child of a server that was killed may take to be gone. */
const PATIENCE_MS = 5_000;
const RETRY_MS = 20;

/**
 * Throws DataDirInUse where another server has the data directory. Only a look, which costs next to nothing: it is the lock that
 * says the last word.
 */
export function refuseHeld(dataDir: string): void {
  const holder = readHolder(join(dataDir, LOCK));
  if (holder && holder.server.pid !== process.pid && isRunning(holder.server)) throw new DataDirInUse(dataDir, holder.server.pid);
}

/**
 * Takes the data directory for a child of this process, or throws DataDirInUse. PGlite takes no lock of its own, and two
 * processes on one directory lose rows without a word. A server keeps its lock while it has no child. A lock whose server is
 * gone is taken over, and its child ended. Returns the release.
 */
export async function lockDataDir(dataDir: string, pid: number): Promise<() => void> {
  const path = join(dataDir, LOCK);
  const mine = `${path}.${process.pid}`;
  const server: Process = { pid: process.pid, started: startOf(process.pid) };
  const holder: Holder = { child: { pid, started: startOf(pid) }, server };
  const deadline = Date.now() + PATIENCE_MS;
  try {
    usable(mine, () => writeFileSync(mine, JSON.stringify(holder)));
    // A hard link is made by one process only, and the file is whole from the start.
    while (!tryLink(mine, path)) {
      const other = readHolder(path);
      const isOurs = other?.server.pid === server.pid && other.server.started === server.started;
      if (other && !isOurs && isRunning(other.server)) throw new DataDirInUse(dataDir, other.server.pid);
      if (isOurs && !isRunning(other.child)) {
        // It is never without a lock: nobody else takes away one whose server runs.
        renameSync(mine, path);
        break;
      }
      if (!other || !isRunning(other.child)) setAside(path);
      else if (isOurs || Date.now() > deadline) throw new DataDirInUse(dataDir, other.server.pid);
      else {
        // It is about to notice, unless a long statement keeps it; what it has acknowledged is on disk.
        kill(other.child.pid);
        await setTimeout(RETRY_MS);
      }
    }
  } finally {
    rmSync(mine, { force: true });
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

// Renaming first: of several processes that found the same stale lock, one removes it, and none removes a new one unseen.
function setAside(path: string): void {
  const aside = `${path}.stale.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return;
    throw error;
  }
  const taken = readHolder(aside);
  if (taken && isRunning(taken.child)) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function readHolder(path: string): Holder | undefined {
  try {
    const { child, server } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder>;
    return isProcess(child) && isProcess(server) ? { child, server } : undefined;
  } catch {
    return undefined; // gone, or cut short by a full disk: nobody holds it
  }
}

function isProcess(value: unknown): value is Process {
  return typeof value === 'object' && value !== null && 'pid' in value && 'started' in value && typeof value.pid === 'number';
}

function isRunning({ pid, started }: Process): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return isCode(error, 'EPERM');
  }
  return startOf(pid) === started;
}

/** Start of the process in clock ticks since boot, with the boot's id; empty where the system does not tell (proc(5)). */
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
