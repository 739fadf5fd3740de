import { execFile } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  DataDirUnusable,
  databaseIn,
  openDataDir,
  rename,
  replacedDatabase,
  withUnfinished,
} from './directory.ts';
import { isReady, runningServerOf, stopServer } from './owner.ts';

const POLL_MS = 20;
/** Maximum time to wait for the server that uses the data directory, in ms. */
const REOPEN_TIMEOUT_MS = 10_000;

/**
 * Replaces the database of the data directory with that of an archive of `writeBackup`, once
 * `check` has opened it in a data directory of its own. A server that uses the data directory loses
 * its connections and opens the restored database at once. Returns the new path of the replaced
 * database, if any. Throws DataDirUnusable if the archive cannot be read.
 */
export async function restoreBackup(
  dataDir: string,
  archive: string,
  check: (dataDir: string) => Promise<void>,
): Promise<string | undefined> {
  const root = resolve(dataDir);
  const current = databaseIn(root);
  const replaced = existsSync(current) ? replacedDatabase(root) : undefined;
  let running: number | undefined;
  openDataDir(root);
  await withUnfinished(root, async (path) => {
    const restored = databaseIn(path);
    mkdirSync(restored, { recursive: true, mode: 0o700 });
    await extract(archive, restored);
    await check(path);
    running = runningServerOf(current);
    // The process that started it starts it again, after this work.
    if (running !== undefined) await stopServer(running);
    if (replaced !== undefined) rename(current, replaced);
    rename(restored, current);
  });
  if (running !== undefined) await untilReady(current);
  return replaced;
}

async function extract(archive: string, directory: string): Promise<void> {
  // Absolute: tar takes a name with a colon, but no slash before it, for one of another host.
  const args = ['-xzf', resolve(archive), '-C', directory, '--numeric-owner'];
  await promisify(execFile)('tar', args).catch(
    ({ stderr, message }: Error & { stderr?: string }) => {
      const reason = (stderr || message).trim().split('\n')[0];
      throw new DataDirUnusable(`${archive} cannot be restored: ${reason}`);
    },
  );
  // The archive has no entry for the directory itself.
  chmodSync(directory, 0o700);
  const { uid, gid } = statSync(join(directory, 'PG_VERSION'));
  chownSync(directory, uid, gid);
}

async function untilReady(database: string): Promise<void> {
  const deadline = performance.now() + REOPEN_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const pid = runningServerOf(database);
    if (pid !== undefined && isReady(database, pid)) return;
    await setTimeout(POLL_MS);
  }
}
