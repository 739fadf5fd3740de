import { execFile } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { mkdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { World } from './fault.ts';

const execute = promisify(execFile);
const SIZE_MB = 256;

/** A file system of its own, small enough to be filled. */
export interface SmallDisk {
  path: string;
  /** Leaves no more than so many bytes free. */
  fill(left: number): Promise<void>;
  /** Gives the space back. */
  free(): Promise<void>;
}

/** Mounts one in memory, or undefined where this user may not. */
export async function mountSmallDisk({ directory, atEnd }: World): Promise<SmallDisk | undefined> {
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
    async fill(left) {
      const { bavail, bsize } = statfsSync(path);
      // Others write meanwhile, and may have the last of it.
      await writeFile(ballast, Buffer.alloc(bavail * bsize)).catch(() => undefined);
      await truncate(ballast, Math.max(0, (await stat(ballast)).size - left));
    },
    free: () => rm(ballast, { force: true }),
  };
}
