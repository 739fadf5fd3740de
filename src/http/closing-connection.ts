import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { memoryOf, MIN_CHUNK_BYTES, REQUEST_BYTES } from './body.ts';

/** Requests that were dropped on a connection. */
interface Dropped {
  requests: number;
  /** Size of their headers and bodies, in bytes. */
  bytes: number;
}

/** Property of a socket that is being closed. */
const CLOSING = Symbol('closing');
type ClosingSocket = Socket & { [CLOSING]?: Dropped };

/**
 * Maximum number of requests that arrive on a connection that is being closed. Node keeps each
 * request in memory until the connection is closed.
 */
const MAX_DROPPED = 64;

/** Maximum size of the headers and bodies of these requests, in bytes. */
const MAX_DROPPED_BYTES = 1_000_000;

/**
 * Marks a connection that is closed after a response that has begun or is pending. Later requests
 * must not be executed, because their client would get no response (RFC 9112, 9.6).
 */
export function markClosing(socket: Socket): void {
  (socket as ClosingSocket)[CLOSING] ??= { requests: 0, bytes: 0 };
}

/** Returns whether a request that arrives now on this connection would get no response. */
export function isClosing(socket: Socket): boolean {
  return (socket as ClosingSocket)[CLOSING] !== undefined;
}

/** Returns the approximate memory of the requests that were dropped on a connection, in bytes. */
export function droppedBytes(socket: Socket): number {
  const { bytes, requests } = (socket as ClosingSocket)[CLOSING] ?? { bytes: 0, requests: 0 };
  return bytes + requests * REQUEST_BYTES;
}

/** Responses that are never sent. */
const unsent = new WeakSet<ServerResponse>();

/** Returns whether the request of this response was dropped. */
export function isDropped(res: ServerResponse): boolean {
  return unsent.has(res);
}

/**
 * Drops a request on a connection that is being closed. Destroys the connection past the limits.
 */
export function drop(req: IncomingMessage, res: ServerResponse): void {
  unsent.add(res);
  const { socket } = req;
  const dropped = (socket as ClosingSocket)[CLOSING];
  if (!dropped) return;
  dropped.bytes += memoryOf(req);
  req.on('data', ({ length }: Buffer) => {
    dropped.bytes += Math.max(length, MIN_CHUNK_BYTES);
    if (dropped.bytes > MAX_DROPPED_BYTES) socket.destroy();
  });
  if (++dropped.requests > MAX_DROPPED) socket.destroy();
}
