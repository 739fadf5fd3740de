import { readFileSync } from 'node:fs';
import type { RunningServer } from './process.ts';

const SAMPLE_MS = 10;

/** Returns the peak of the server's memory during the work, in MiB above its memory before. */
export async function memoryAddedBy(
  { child }: RunningServer,
  work: () => Promise<void>,
): Promise<number> {
  const before = residentOf(child.pid);
  let most = before;
  const watch = setInterval(() => (most = Math.max(most, residentOf(child.pid))), SAMPLE_MS);
  await work().finally(() => clearInterval(watch));
  return Math.max(most, residentOf(child.pid)) - before;
}

function residentOf(pid: number | undefined): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}
