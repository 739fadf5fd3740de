import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** The data directory, or the database in it, cannot be used; the message says why, to a person. */
export class DataDirUnusable extends Error {
  override readonly name = 'DataDirUnusable';
}

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this process may not read and write there',
  EDQUOT: 'there is no space left',
  EEXIST: 'it is not a directory',
  ENOENT: 'it cannot be made',
  ENOSPC: 'there is no space left',
  ENOTDIR: 'it is not a directory',
  EPERM: 'it belongs to another user',
  EROFS: 'it can only be read',
};
/** By these, and no others, a directory is known to hold a database (PostgreSQL, 66.1). */
const VITAL = ['.', 'PG_VERSION', join('global', 'pg_control')];

/** Makes the directory where there is none, and has nobody but its owner open it. Throws DataDirUnusable. */
export function openDataDir(path: string): void {
  usable(path, () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    chmodSync(path, 0o700);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
  });
}

/** As `openDataDir`, where everybody may make a directory of this name. Throws DataDirUnusable if another user has, or if it is a link. */
export function openPrivateDir(path: string): void {
  usable(path, () => mkdirSync(path, { recursive: true, mode: 0o700 }));
  const entry = lstatSync(path);
  if (!entry.isDirectory() || entry.uid !== process.getuid?.()) {
    throw new DataDirUnusable(
      `The data directory cannot be used, because of ${path}: it is not a directory of this user. Remove it, or set DATA_DIR to a shorter path.`,
    );
  }
  openDataDir(path);
}

/** Does what needs this file or directory. What the system refuses is thrown as DataDirUnusable. */
export function usable<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error;
    throw new DataDirUnusable(`The data directory cannot be used, because of ${path}: ${REASONS[error.code] ?? error.code}.`);
  }
}

/**
 * Opens the database in this directory, which is made where there is none. One that was not whole yet when its process ended, held
 * nothing of anybody's and is made anew. Anything else that is no whole database is left as it is: throws DataDirUnusable.
 */
export async function openDatabaseDir<T>(path: string, open: () => Promise<T>): Promise<T> {
  const mark = `${path}.unfinished`;
  if (existsSync(mark)) rmSync(path, { recursive: true, force: true });
  const isNew = usable(path, () => !existsSync(path) || readdirSync(path).length === 0);
  if (isNew) usable(path, () => writeFileSync(mark, ''));
  else for (const name of VITAL) refuseWithout(path, name);
  const opened = await open().catch((error: unknown) => {
    throw unopened(path, error);
  });
  rmSync(mark, { force: true });
  return opened;
}

// To PGlite a directory without its version is an empty one, and it would write a new database over what is there.
function refuseWithout(path: string, name: string): void {
  if (!existsSync(join(path, name))) throw damaged(path, `it lacks ${name}`);
  usable(join(path, name), () => accessSync(join(path, name), constants.R_OK | constants.W_OK));
}

function unopened(path: string, cause: unknown): DataDirUnusable {
  if (statfsSync(join(path, '..')).bavail > 0) return damaged(path, 'its files are damaged', { cause });
  return new DataDirUnusable(`The database in ${path} cannot be opened: there is no space left.`, { cause });
}

function damaged(path: string, why: string, options?: ErrorOptions): DataDirUnusable {
  const cure = 'put a backup in its place, or set DATA_DIR to another directory';
  return new DataDirUnusable(`The database in ${path} cannot be opened, for ${why}; nothing was reset: ${cure}.`, options);
}
