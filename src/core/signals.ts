/** How long after a signal the same one may be its echo, in ms: a terminal sends it to npm and to what npm runs, and npm passes it on. */
const ECHO_MS = 1_000;

/** Emits signals by their names, as a process does. */
export interface SignalSource {
  on(signal: NodeJS.Signals, listener: () => void): unknown;
  off(signal: NodeJS.Signals, listener: () => void): unknown;
}

/** Calls `first` at the first of these signals, and `later` at those that come when no echo of it is to be expected any more. Returns what ends that. */
export function onSignals(
  signals: readonly NodeJS.Signals[],
  first: () => void,
  later: () => void,
  { source = process, elapsedMs = () => performance.now() }: { source?: SignalSource; elapsedMs?: () => number } = {},
): () => void {
  let begun: number | undefined;
  const hear = () => {
    const now = elapsedMs();
    if (begun === undefined) {
      begun = now;
      first();
    } else if (now - begun >= ECHO_MS) later();
  };
  // Not `once`: others that listen, such as who puts a terminal's cursor back, end the process where they find nobody else listening.
  for (const signal of signals) source.on(signal, hear);
  return () => {
    for (const signal of signals) source.off(signal, hear);
  };
}
