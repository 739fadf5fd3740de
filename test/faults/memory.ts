import { readFile } from 'node:fs/promises';
import type { RunningServer } from '../support/process.ts';

/** Returns the resident memory of the server process in MB (VmRSS of proc(5)). */
export async function memoryOf({ child }: RunningServer): Promise<number> {
  const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
}

/**
 * Returns the memory of the processes of a PostgreSQL server in MB, each shared page counted once
 * (Pss of proc(5)).
 */
export async function memoryOfDatabase(pid: number): Promise<number> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  let sum = 0;
  for (const each of [pid, ...children.split(' ').filter(Boolean)]) {
    // A worker may have exited meanwhile.
    const pages = await readFile(`/proc/${each}/smaps_rollup`, 'utf8').catch(() => '');
    sum += Number(/^Pss: +(\d+)/m.exec(pages)?.[1] ?? 0);
  }
  return Math.round(sum / 1024);
}
