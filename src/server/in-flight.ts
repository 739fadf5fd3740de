import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Requests that were begun and are not answered, and how many there may be (overload.ts). One process has one event loop, and so one count. */
export const inFlight = { now: 0, most: Infinity };

/** So many answers may wait for the one before them on the same connection. */
const MAX_QUEUED = 64;

/** Answers that wait for others on their connection to go first, for a client may ask again before it is answered (RFC 9112, 9.3.2). */
const queues = new WeakMap<Socket, Set<ServerResponse>>();

/** Whether there are as many requests as can be answered in good time. */
export function isFull(): boolean {
  return inFlight.now >= inFlight.most;
}

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
  if (res.listenerCount('close', land) > 0) land.call(res);
}

/** Whether the answer may wait for those before it on its connection. Where they are too many, nobody reads them. */
export function mayQueue(res: ServerResponse): boolean {
  const { socket } = res.req;
  const queue = queues.get(socket) ?? new Set();
  queues.set(socket, queue.add(res));
  res.once('close', () => queue.delete(res));
  return queue.size <= MAX_QUEUED;
}

/** Closes the answers that waited on a connection that is closed: those in front of a CONNECT, Node forgets. */
export function closeQueue(socket: Socket): void {
  for (const res of queues.get(socket) ?? []) res.destroy();
}

function land(this: ServerResponse): void {
  // Once: it may be set aside after it is closed.
  this.off('close', land);
  inFlight.now--;
}
