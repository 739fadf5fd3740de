/**
 * Time after the first signal, in ms, during which signals are duplicates: a terminal signals npm
 * and npm's child process, and npm forwards the signal.
 */
const DUPLICATE_MS = 1_000;

/** The part of `process` that emits signals. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/**
 * Calls `onFirst` at the first of these signals, and `onRepeat` at further ones, except duplicates
 * of the first. Returns a function that removes the listeners.
 */
export function onSignals(
  signals: readonly NodeJS.Signals[],
  onFirst: () => void,
  onRepeat: () => void,
  {
    source = process,
    elapsedMs = () => performance.now(),
  }: { source?: SignalSource; elapsedMs?: () => number } = {},
): () => void {
  let firstAt: number | undefined;
  const onSignal = () => {
    const now = elapsedMs();
    if (firstAt === undefined) {
      firstAt = now;
      onFirst();
    } else if (now - firstAt >= DUPLICATE_MS) onRepeat();
  };
  // Not `once`: other listeners, such as one that restores the terminal's cursor, end the process
  // if they are the only listeners.
  for (const signal of signals) source.on(signal, onSignal);
  return () => {
    for (const signal of signals) source.off(signal, onSignal);
  };
}
