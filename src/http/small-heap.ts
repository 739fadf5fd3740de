import { setFlagsFromString } from 'node:v8';

/** By how much of what is in use the heap may grow before its old part is collected again, in percent. */
const GROWTH = 30;
/** V8 decides for itself. */
const BY_ITSELF = 0;

let sending = 0;

/**
 * Keeps the heap close to what is in use while this is sent. By itself, V8 lets a heap of our size double before it looks for what nobody needs any
 * more, and the texts of whole lists are too long for the young part, where garbage costs nothing. Pages would pay for it with a tenth of their rate.
 */
export async function inSmallHeap(send: () => Promise<void>): Promise<void> {
  if (sending++ === 0) grow(GROWTH);
  try {
    await send();
  } finally {
    if (--sending === 0) grow(BY_ITSELF);
  }
}

function grow(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}
