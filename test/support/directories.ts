import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where the set-up keeps a data directory as a first start leaves it, as far as the database goes. To copy it takes a fraction of the time. */
const TEMPLATE = 'TEST_DATA_DIR';

/** Has every data directory that is made from now on be a copy of this one, which nobody has open. */
export function copyFrom(path: string): void {
  process.env[TEMPLATE] = path;
}

/** Makes a data directory whose embedded database is there and empty. What a first start does is for those that start on none. */
export async function makeDataDir(): Promise<string> {
  const path = await makeDirectory();
  const template = process.env[TEMPLATE];
  if (template !== undefined) await cp(template, path, { recursive: true });
  return path;
}

/** Runs the work with such a data directory of its own, and removes it afterwards. */
export async function withDataDir<T>(work: (path: string) => Promise<T>): Promise<T> {
  return within(await makeDataDir(), work);
}

/** Runs the work with an empty directory, and removes it afterwards. */
export async function withDirectory<T>(work: (path: string) => Promise<T>): Promise<T> {
  return within(await makeDirectory(), work);
}

/** Removes it, though a database whose server was killed may still be writing its last there. */
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
