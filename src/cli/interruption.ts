import { onSignals } from '../core/signals.ts';
import type { CommandContext } from './command-context.ts';
import { EXIT } from './command.ts';

/** Runs work that ends with an AbortError soon after Ctrl-C, and then sets the exit code. A later Ctrl-C ends the process at once. */
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
    // An echo of the signal may be still to come, and is not to end what follows.
    if (!interruption.signal.aborted) stopListening();
  }
}

/** Whether it says no more than that somebody wanted an end. */
export function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}
