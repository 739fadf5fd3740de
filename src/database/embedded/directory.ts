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

/**
 * The data directory, or its database, cannot be used. The message explains the reason to the user.
 */
export class DataDirUnusable extends Error {
  override readonly name = 'DataDirUnusable';
}

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
/** Paths that identify a directory as a database (PostgreSQL, 66.1). */
const REQUIRED_PATHS = ['.', 'PG_VERSION', join('global', 'pg_control')];

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
      `The data directory cannot be used, because of ${path}: it is not a directory of this user. Remove it, or set DATA_DIR to a shorter path.`,
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
    throw new DataDirUnusable(
      `The data directory cannot be used, because of ${path}: ${REASONS[error.code] ?? error.code}.`,
    );
  }
}

/**
 * Opens the database in this directory. Creates it if it is missing, and again if its creation was
 * interrupted, because it has no data then. Leaves any other incomplete database unchanged and
 * throws DataDirUnusable.
 */
export async function openDatabaseDir<T>(path: string, open: () => Promise<T>): Promise<T> {
  const marker = `${path}.unfinished`;
  if (existsSync(marker)) rmSync(path, { recursive: true, force: true });
  const isNew = access(path, () => !existsSync(path) || readdirSync(path).length === 0);
  if (isNew) access(path, () => writeFileSync(marker, ''));
  else for (const name of REQUIRED_PATHS) requirePath(path, name);
  const database = await open().catch((error: unknown) => {
    throw openError(path, error);
  });
  rmSync(marker, { force: true });
  return database;
}

// PGlite would overwrite a directory that lacks PG_VERSION with a new database.
function requirePath(path: string, name: string): void {
  if (!existsSync(join(path, name))) throw damagedError(path, `it lacks ${name}`);
  access(join(path, name), () => accessSync(join(path, name), constants.R_OK | constants.W_OK));
}

function openError(path: string, cause: unknown): DataDirUnusable {
  if (statfsSync(join(path, '..')).bavail > 0)
    return damagedError(path, 'its files are damaged', { cause });
  return new DataDirUnusable(`The database in ${path} cannot be opened: there is no space left.`, {
    cause,
  });
}

function damagedError(path: string, why: string, options?: ErrorOptions): DataDirUnusable {
  const remedy = 'Put a backup in its place, or set DATA_DIR to another directory';
  return new DataDirUnusable(
    `The database in ${path} cannot be opened: ${why}. Nothing was reset. ${remedy}.`,
    options,
  );
}
