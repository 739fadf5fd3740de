const MIN_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/**
 * Yields delays between retries, in ms, without end: exponential from 0.1 to 5 s, each shortened at
 * random by up to half, so that concurrent retries spread out.
 */
export function* backoff(): Generator<number, never> {
  for (let delay = MIN_DELAY_MS; ; delay = Math.min(delay * 2, MAX_DELAY_MS))
    yield delay * (0.5 + Math.random() / 2);
}
