import { setFlagsFromString } from 'node:v8';

/** By how much of what is in use the heap may grow before its old part is collected again, in percent. */
const GROWTH = 40;

/**
 * Keeps the heap close to what is in use. By itself, V8 lets a heap of our size double before it looks for what nobody needs any more, and the texts of
 * whole lists are too long for the young part, where garbage costs nothing.
 */
export function keepHeapSmall(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH}`);
}
