import { readFileSync } from 'node:fs';
import type { RunningServer } from './process.ts';

const SAMPLE_MS = 10;

/** Returns the peak of the server's memory during the work, in MiB above its memory before. */
export async function memoryAddedBy(
  server: RunningServer,
  work: () => Promise<void>,
): Promise<number> {
  const before = memoryOf(server);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, memoryOf(server))), SAMPLE_MS);
  await work().finally(() => clearInterval(watch));
  return Math.max(most, memoryOf(server)) - before;
}

/** Returns the resident memory of the server process in MiB (VmRSS of proc(5)). */
export function memoryOf({ child }: RunningServer): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}

/**
 * Returns the memory of the processes of a PostgreSQL server in MiB, each shared page counted once
 * (Pss of proc(5)).
 */
export function memoryOfDatabase(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  let sum = 0;
  for (const each of [pid, ...children.split(' ').filter(Boolean)]) {
    try {
      const pages = readFileSync(`/proc/${each}/smaps_rollup`, 'utf8');
      sum += Number(/^Pss: +(\d+)/m.exec(pages)?.[1] ?? 0);
    } catch {
      // A worker has exited meanwhile.
    }
  }
  return sum / 1024;
}
