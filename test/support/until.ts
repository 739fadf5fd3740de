import { setTimeout } from 'node:timers/promises';

const EVERY_MS = 5;
const PATIENCE_MS = 120_000;

/** Polls until the condition is true. Throws after two minutes, with the name of the condition. */
export async function until(
  isSo: () => boolean | Promise<boolean>,
  what = 'the condition',
): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await setTimeout(EVERY_MS))
    if (await isSo()) return;
  throw new Error(`${what} did not come within ${PATIENCE_MS / 1000} s`);
}
