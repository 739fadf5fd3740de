import { execFile } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { mkdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { FaultContext } from './fault.ts';

const execute = promisify(execFile);
const SIZE_MB = 256;

/** A file system that is small enough to fill. */
export interface SmallDisk {
  path: string;
  /** Fills it, except for this number of bytes. */
  fill(freeBytes: number): Promise<void>;
  /** Frees the space. */
  free(): Promise<void>;
}

/** Mounts one in memory. Returns undefined if this user has no permission. */
export async function mountSmallDisk({
  directory,
  atEnd,
}: FaultContext): Promise<SmallDisk | undefined> {
  const path = join(directory, 'small');
  await mkdir(path);
  try {
    await execute('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MB}m,mode=0711`, 'tmpfs', path]);
  } catch {
    return undefined;
  }
  atEnd(() => execute('umount', ['--lazy', path]));
  const ballast = join(path, 'ballast');
  return {
    path,
    async fill(freeBytes) {
      const { bavail, bsize } = statfsSync(path);
      // Other processes may use the last space meanwhile.
      await writeFile(ballast, Buffer.alloc(bavail * bsize)).catch(() => undefined);
      await truncate(ballast, Math.max(0, (await stat(ballast)).size - freeBytes));
    },
    free: () => rm(ballast, { force: true }),
  };
}
