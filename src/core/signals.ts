/**
 * Time after the first signal, in ms, during which signals are duplicates: a terminal signals npm
 * and npm's child process, and npm forwards the signal.
 */
const DUPLICATE_MS = 1_000;

/**
 * Calls `onFirst` at the first of these signals, and `onRepeat` at further ones, except duplicates
 * of the first.
 */
export function onSignals(
  signals: readonly NodeJS.Signals[],
  onFirst: () => void,
  onRepeat: () => void,
): void {
  let firstAt: number | undefined;
  const onSignal = () => {
    const now = performance.now();
    if (firstAt === undefined) {
      firstAt = now;
      onFirst();
    } else if (now - firstAt >= DUPLICATE_MS) onRepeat();
  };
  for (const signal of signals) process.on(signal, onSignal);
}
