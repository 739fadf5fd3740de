import { resolve } from 'node:path';
import { refuseOldNode } from './core/node-version.ts';

refuseOldNode();
const { refuseHeld } = await import('./database/embedded/lock.ts');
const { DEFAULT_DATA_DIR } = await import('./core/data-dir.ts');

// Loading the server takes most of a second. Whether another one has the data directory can be seen before.
const { DATABASE_URL, DATA_DIR } = process.env;
try {
  if (!DATABASE_URL) refuseHeld(resolve(DATA_DIR || DEFAULT_DATA_DIR));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
await import('./server.ts');
