import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

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

interface Holder {
  /** The process that has the files open. */
  pid: number;
  /** The process to stop, for whom that one works. */
  server: number;
  /** When the process started, by the system's count, so that a number used again is not taken for the process that had it before. */
  started: string;
}

// How long the database of a killed server may take to notice and end.
const PATIENCE_MS = 800;
const RETRY_MS = 40;

/**
 * Takes the data directory for the process, or throws DataDirInUse. PGlite takes no lock of its own, and two processes
 * on one directory lose rows without a word. A lock whose process is gone is taken over. Returns the release.
 */
export async function lockDataDir(dataDir: string, pid: number): Promise<() => void> {
  const path = join(dataDir, 'lock');
  const mine = `${path}.${process.pid}`;
  const holder: Holder = { pid, server: process.pid, started: startOf(pid) ?? '' };
  const deadline = Date.now() + PATIENCE_MS;
  writeFileSync(mine, JSON.stringify(holder));
  try {
    // A hard link is made by one process only, and the file is whole from the start.
    while (!tryLink(mine, path)) {
      const other = readHolder(path);
      if (!other || !isRunning(other)) setAside(path);
      else if (Date.now() > deadline) throw new DataDirInUse(dataDir, other.server);
      else await setTimeout(RETRY_MS);
    }
  } finally {
    rmSync(mine, { force: true });
  }
  return () => {
    if (readHolder(path)?.pid === pid) rmSync(path, { force: true });
  };
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
  if (taken && isRunning(taken)) tryLink(aside, path);
  rmSync(aside, { force: true });
}

function readHolder(path: string): Holder | undefined {
  try {
    const { pid, server, started } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder>;
    if (typeof pid !== 'number' || typeof server !== 'number' || typeof started !== 'string') return undefined;
    return { pid, server, started };
  } catch {
    return undefined; // gone, or cut short by a full disk: nobody holds it
  }
}

function isRunning({ pid, started }: Holder): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return isCode(error, 'EPERM');
  }
  const now = startOf(pid);
  return now === undefined || now === started;
}

/** Start of the process in clock ticks since boot, with the boot's id; undefined where the system does not tell (proc(5)). */
function startOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ');
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields?.[19]}`;
  } catch {
    return undefined;
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
