import { readFile } from 'node:fs/promises';
import type { RunningServer } from '../support/process.ts';

/** Returns the resident memory of the server process in MB (VmRSS of proc(5)). */
export async function memoryOf({ child }: RunningServer): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
}
