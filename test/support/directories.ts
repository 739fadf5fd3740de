import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * Environment variable with the path of a migrated data directory. Copying it is much faster than a
 * first start.
 */
const TEMPLATE = 'TEST_DATA_DIR';

/** Sets the directory that data directories are copied from. No process may have it open. */
export function copyFrom(path: string): void {
  process.env[TEMPLATE] = path;
}

/**
 * Creates a data directory with a migrated, empty database. Tests of the first start use an empty
 * directory instead.
 */
export async function makeDataDir(): Promise<string> {
  const path = await makeDirectory();
  const template = process.env[TEMPLATE];
  // Unlike fs.cp, it keeps the owner: PostgreSQL does not run as root.
  if (template !== undefined) await execute('cp', ['-a', `${template}/.`, path]);
  return path;
}

/** Runs the work with a new data directory, and removes it afterwards. */
export async function withDataDir<T>(work: (path: string) => Promise<T>): Promise<T> {
  return within(await makeDataDir(), work);
}

/** Runs the work with an empty directory, and removes it afterwards. */
export async function withDirectory<T>(work: (path: string) => Promise<T>): Promise<T> {
  return within(await makeDirectory(), work);
}

/**
 * Removes a directory. Retries, because the database of a killed server may still be writing to it.
 */
export function removeDirectory(path: string): Promise<void> {
  return rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

async function within<T>(path: string, work: (path: string) => Promise<T>): Promise<T> {
  try {
    return await work(path);
  } finally {
    await removeDirectory(path);
  }
}

function makeDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'shopfront-test-'));
}
