import { onSignals } from '../core/signals.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT } from './exit.ts';

/**
 * Runs work that Ctrl-C aborts by the signal, and then sets the exit code. A second Ctrl-C ends the
 * process at once.
 */
export async function interruptible(
  { signals, clock, exit, setExitCode }: CommandContext,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const interruption = new AbortController();
  const stopListening = onSignals(
    ['SIGINT'],
    () => interruption.abort(),
    () => exit(EXIT.interrupted),
    { source: signals, elapsedMs: () => clock.elapsedMs() },
  );
  try {
    await work(interruption.signal);
  } catch (error) {
    if (!isAbort(error)) throw error;
    setExitCode(EXIT.interrupted);
  } finally {
    // After an abort, keeps listening: the signal may arrive twice, and must not end what follows.
    if (!interruption.signal.aborted) stopListening();
  }
}

/** Returns whether the error is an AbortError. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
