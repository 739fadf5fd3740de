import { setFlagsFromString } from 'node:v8';

/** Maximum growth of the heap beyond its memory in use before the next collection, in percent. */
const GROWTH = 30;
/** Restores V8's default. */
const DEFAULT_GROWTH = 0;

let running = 0;

/**
 * Keeps the heap close to the memory in use while `send` runs. By default, V8 lets a heap of this
 * size double before it collects garbage, and the texts of whole lists are too long for the young
 * generation, where collection is free. For pages, a small heap would cost a tenth of their rate.
 */
export async function inSmallHeap(send: () => Promise<void>): Promise<void> {
  enter();
  try {
    await send();
  } finally {
    leave();
  }
}

/** Lets the heap grow again while `send` waits, because a slow reader may take hours. */
export async function outsideSmallHeap(wait: Promise<unknown>): Promise<void> {
  leave();
  try {
    await wait;
  } finally {
    enter();
  }
}

function enter(): void {
  if (running++ === 0) setGrowth(GROWTH);
}

function leave(): void {
  if (--running === 0) setGrowth(DEFAULT_GROWTH);
}

function setGrowth(percent: number): void {
  setFlagsFromString(`--heap-growing-percent=${percent}`);
}
