import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { boundUnread, DISCARD_LIMIT, MIN_PIECE_BYTES } from './body.ts';

/** Property of a socket that is being closed: the number of requests that have arrived since. */
const CLOSING = Symbol('closing');
type Marked = Socket & { [CLOSING]?: number };

/** Maximum number of requests that arrive on a connection that is being closed. Node keeps each of them until the connection is closed. */
const MAX_DROPPED = 64;

/**
 * Notes that the connection is closed after a response, which has been begun or is pending. Requests behind that response must not be
 * executed, because no client would see what they have done (RFC 9112, 9.6).
 */
export function noteClosing(socket: Socket): void {
  (socket as Marked)[CLOSING] ??= 0;
}

/** Returns whether a request that arrives now on this connection would have no response. */
export function isClosing(socket: Socket): boolean {
  return (socket as Marked)[CLOSING] !== undefined;
}

/**
 * Drops a request on a connection that is being closed, with up to 100 KB of its body, and the connection itself when there are too many
 * requests.
 */
export function drop(req: IncomingMessage): void {
  const { socket } = req;
  boundUnread(req);
  let received = 0;
  req.on('data', ({ length }: Buffer) => {
    received += Math.max(length, MIN_PIECE_BYTES);
    if (received > DISCARD_LIMIT) req.pause();
  });
  const dropped = ((socket as Marked)[CLOSING] ?? 0) + 1;
  (socket as Marked)[CLOSING] = dropped;
  if (dropped > MAX_DROPPED) socket.destroy();
}
