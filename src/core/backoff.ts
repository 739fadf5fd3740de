const FIRST_MS = 100;
const LAST_MS = 5_000;

/**
 * The pauses between attempts at what may take a while to succeed, in ms, without end: each up to twice the one before, from 0.1 to 5 s, and by
 * chance up to half shorter, so that many who wait for the same do not come at once.
 */
export function* pauses(): Generator<number, never> {
  for (let pause = FIRST_MS; ; pause = Math.min(pause * 2, LAST_MS)) yield pause * (0.5 + Math.random() / 2);
}
