import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { MIN_PIECE_BYTES } from './body.ts';

/** The requests that were dropped on a connection. */
interface Dropped {
  requests: number;
  /** Size of their bodies. */
  bytes: number;
}

/** Property of a socket that is being closed. */
const CLOSING = Symbol('closing');
type Marked = Socket & { [CLOSING]?: Dropped };

/** Maximum number of requests that arrive on a connection that is being closed. Node keeps each of them until the connection is closed. */
const MAX_DROPPED = 64;

/** Maximum size of the bodies of these requests in bytes. */
const MAX_DROPPED_BYTES = 1_000_000;

/**
 * Notes that the connection is closed after a response, which has been begun or is pending. Requests behind that response must not be
 * executed, because no client would see what they have done (RFC 9112, 9.6).
 */
export function noteClosing(socket: Socket): void {
  (socket as Marked)[CLOSING] ??= { requests: 0, bytes: 0 };
}

/** Returns whether a request that arrives now on this connection would have no response. */
export function isClosing(socket: Socket): boolean {
  return (socket as Marked)[CLOSING] !== undefined;
}

/** Responses that are never sent. */
const unsent = new WeakSet<ServerResponse>();

/** Returns whether the request of this response was dropped. */
export function isDropped(res: ServerResponse): boolean {
  return unsent.has(res);
}

/** Drops a request on a connection that is being closed. Destroys the connection when too much has been dropped on it. */
export function drop(req: IncomingMessage, res: ServerResponse): void {
  unsent.add(res);
  const { socket } = req;
  const dropped = (socket as Marked)[CLOSING];
  if (!dropped) return;
  req.on('data', ({ length }: Buffer) => {
    dropped.bytes += Math.max(length, MIN_PIECE_BYTES);
    if (dropped.bytes > MAX_DROPPED_BYTES) socket.destroy();
  });
  if (++dropped.requests > MAX_DROPPED) socket.destroy();
}
