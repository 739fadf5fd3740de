import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Collects garbage, and returns the memory in use by JavaScript, in bytes. */
export function heapUsed(): number {
  collect();
  const { heapUsed: heap, external } = process.memoryUsage();
  return heap + external;
}
