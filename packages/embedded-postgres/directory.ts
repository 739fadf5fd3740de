import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { isRunning } from './running.ts';

/**
 * The data directory, or its database, cannot be used. The message explains the reason to the user.
 */
export class DataDirUnusable extends Error {
  override readonly name = 'DataDirUnusable';
}

/** User that PostgreSQL runs as if this process is root's and the database has no owner yet. */
export const NOBODY = 65_534;

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this process may not read and write there',
  EDQUOT: 'there is no space left',
  EEXIST: 'it is not a directory',
  ENOENT: 'it cannot be created',
  ENOSPC: 'there is no space left',
  ENOTDIR: 'it is not a directory',
  EPERM: 'it belongs to another user',
  EROFS: 'it is read-only',
};
/** Messages of PostgreSQL about the owner or the permissions of files. */
const FORBIDDEN = /permission|ownership/i;
/** Paths that identify a directory as a database (PostgreSQL, 66.1). */
const REQUIRED_PATHS = ['PG_VERSION', join('global', 'pg_control')];
/** Name of the database in a data directory. */
const DATABASE = 'postgresql';
/** Start of the names of unfinished databases, before the pid of their process. */
const UNFINISHED = `${DATABASE}.new-`;
/** Start of the names of replaced databases, before the time. */
const REPLACED = `${DATABASE}.replaced-`;

/**
 * Creates the directory if it is missing. Restricts access to its owner. Throws DataDirUnusable.
 */
export function openDataDir(path: string): void {
  access(path, () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  });
}

/**
 * Like `openDataDir`, where every user may create a directory of this name. Throws DataDirUnusable
 * if another user has created it, or if it is a link.
 */
export function openPrivateDir(path: string): void {
  access(path, () => mkdirSync(path, { recursive: true, mode: 0o700 }));
  const entry = lstatSync(path);
  if (!entry.isDirectory() || entry.uid !== process.getuid?.()) {
    throw new DataDirUnusable(
      `The data directory cannot be used, because of ${path}: it is not a directory of this user. Set DATA_DIR to a shorter path, or remove it if no server uses it.`,
    );
  }
  openDataDir(path);
}

/** Runs work on this file or directory. Throws system errors as DataDirUnusable. */
export function access<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
    const reason = REASONS[error.code] ?? error.code;
    const remedy = /^(EACCES|EPERM)$/.test(error.code) ? ` ${permissionRemedy(path)}` : '';
    throw new DataDirUnusable(
      `The data directory cannot be used, because of ${path}: ${reason}.${remedy}`,
    );
  }
}

/** Returns the path of the database in this data directory. */
export function databaseIn(dataDir: string): string {
  return join(dataDir, DATABASE);
}

/**
 * Creates the database in this data directory if it is missing or empty: `create` fills another
 * directory, which is renamed, so that an interrupted start leaves nothing behind. Restricts access
 * to an existing one to its owner, because PostgreSQL opens no other. Throws DataDirUnusable, also
 * for an incomplete database.
 */
export async function createDatabase(
  dataDir: string,
  create: (path: string) => Promise<void>,
): Promise<void> {
  const path = databaseIn(dataDir);
  if (access(path, () => existsSync(path) && readdirSync(path).length > 0)) {
    access(path, () => chmodSync(path, 0o700));
    for (const name of REQUIRED_PATHS)
      if (!exists(join(path, name))) throw unusableDatabase(path, `it lacks ${name}`);
    return;
  }
  rejectInterruptedRestore(dataDir);
  await withUnfinished(dataDir, async (unfinished) => {
    try {
      await create(unfinished);
      rename(unfinished, path);
    } catch (error) {
      // Another process may have been faster.
      if (!existsSync(join(path, 'PG_VERSION')))
        throw new DataDirUnusable(
          `The database in ${path} cannot be created: ${error instanceof Error ? error.message : String(error)}.`,
        );
    }
  });
}

/**
 * Calls `work` with the path of a new directory in this data directory. Removes the new directory
 * afterwards, and first those of processes that were killed.
 */
export async function withUnfinished(
  dataDir: string,
  work: (path: string) => Promise<void>,
): Promise<void> {
  const path = join(dataDir, UNFINISHED + process.pid);
  access(dataDir, () => removeUnfinished(dataDir));
  unfinishedHere.add(dataDir);
  try {
    await work(path);
  } finally {
    unfinishedHere.delete(dataDir);
    rmSync(path, { recursive: true, force: true });
  }
}

/** Data directories whose database this process creates or restores. */
const unfinishedHere = new Set<string>();

/** Returns whether a process creates or restores the database of this data directory. */
export function isBeingReplaced(dataDir: string): boolean {
  // In a container, a killed process may have had our id.
  return (
    unfinishedHere.has(dataDir) ||
    unfinishedIn(dataDir).some(({ pid }) => pid !== process.pid && isRunning(pid))
  );
}

/** Returns a new name for the database of this data directory, to keep it beside another. */
export function replacedDatabase(dataDir: string): string {
  return join(dataDir, REPLACED + Date.now());
}

/** Renames a directory durably. */
export function rename(from: string, to: string): void {
  renameSync(from, to);
  const descriptor = openSync(dirname(to), 'r');
  fsyncSync(descriptor);
  closeSync(descriptor);
}

/** Returns the uid of the directory's owner. */
export function ownerOf(path: string): number {
  return access(path, () => statSync(path).uid);
}

/** The error for a database that cannot be opened for this reason, with a remedy that loses nothing. */
export function unusableDatabase(path: string, reason: string): DataDirUnusable {
  return new DataDirUnusable(
    `The database in ${path} cannot be opened: ${reason}. Nothing was changed. ${remedyOf(path, reason)}`,
  );
}

function remedyOf(path: string, reason: string): string {
  return FORBIDDEN.test(reason)
    ? permissionRemedy(path)
    : 'Remove this cause and start again, or restore a backup (npm run cli -- restore DIRECTORY), which keeps this database beside it.';
}

// Root's PostgreSQL runs as another user.
function permissionRemedy(path: string): string {
  const quoted = `'${path.replaceAll("'", `'\\''`)}'`;
  const user = process.getuid?.() || NOBODY;
  return `Mend it as root with: chown -R ${user} ${quoted} && chmod -R u+rwX,go= ${quoted} .`;
}

// A restore renames the database before it renames the restored one.
function rejectInterruptedRestore(dataDir: string): void {
  const times = readdirSync(dataDir)
    .filter((name) => name.startsWith(REPLACED))
    .map((name) => Number(name.slice(REPLACED.length)));
  if (times.length > 0)
    throw new DataDirUnusable(
      `The restore of ${databaseIn(dataDir)} was interrupted. Rename ${join(dataDir, REPLACED + Math.max(...times))} back to it.`,
    );
}

function exists(path: string): boolean {
  return access(path, () => statSync(path, { throwIfNoEntry: false }) !== undefined);
}

function removeUnfinished(dataDir: string): void {
  for (const { name, pid } of unfinishedIn(dataDir))
    if (!isRunning(pid)) rmSync(join(dataDir, name), { recursive: true, force: true });
}

function unfinishedIn(dataDir: string): { name: string; pid: number }[] {
  return readdirSync(dataDir)
    .filter((name) => name.startsWith(UNFINISHED))
    .map((name) => ({ name, pid: Number(name.slice(UNFINISHED.length)) }));
}
