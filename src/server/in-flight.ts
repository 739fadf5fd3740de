import type { ServerResponse } from 'node:http';

/** Requests that were begun and are not answered. One process has one event loop, and so one count. */
export const inFlight = { now: 0, answered: 0 };

/** Counts the request until it is answered. */
export function takeOff(res: ServerResponse): void {
  inFlight.now++;
  res.on('close', land);
}

/**
 * Counts the request no longer, though it is not answered: what it waits for from here on is nothing that the event loop does, such as a slow reader
 * or a password's hash.
 */
export function setAside(res: ServerResponse): void {
  if (res.listenerCount('close', land) === 0) return;
  res.off('close', land);
  land();
}

function land(): void {
  inFlight.now--;
  inFlight.answered++;
}
