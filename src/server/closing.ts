import type { Socket } from 'node:net';

/** Where a socket says that it is being closed. */
const CLOSING = Symbol('closing');
type Marked = Socket & { [CLOSING]?: true };

/**
 * Notes that the connection is closed after a response, which has been begun or is pending. Requests behind that response must not be
 * executed, because no client would see what they have done (RFC 9112, 9.6).
 */
export function noteClosing(socket: Socket): void {
  (socket as Marked)[CLOSING] = true;
}

/** Returns whether a request that arrives now on this connection would have no response. */
export function isClosing(socket: Socket): boolean {
  return (socket as Marked)[CLOSING] === true;
}
