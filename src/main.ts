import { resolve } from 'node:path';
import { requireNodeVersion } from './core/node-version.ts';

requireNodeVersion();
const { rejectIfLocked } = await import('./database/embedded/lock.ts');
const { DEFAULT_DATA_DIR } = await import('./core/data-dir.ts');

// Checks the lock of the data directory first, because loading the server takes most of a second.
const { DATABASE_URL, DATA_DIR } = process.env;
try {
  if (!DATABASE_URL) rejectIfLocked(resolve(DATA_DIR || DEFAULT_DATA_DIR));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
await import('./server.ts');
