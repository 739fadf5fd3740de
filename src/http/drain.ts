import type { Server } from 'node:http';
import { Server as Listener, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout } from 'node:timers/promises';
import { responseOn } from './in-flight.ts';

/**
 * Time in which a client may send its next request on an open connection, and complete the head of
 * a request that it has begun, in ms.
 */
export const GRACE_MS = 1_000;
const CHECK_INTERVAL_MS = 100;
const QUIET_TURNS = 3;

const connections = new WeakMap<Server, Set<Socket>>();

/** Tracks the connections of a server for `connectionsOf` and `stopListening`. */
export function trackConnections(server: Server): void {
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
}

/** Returns the open connections of a server. */
export function connectionsOf(server: Server): ReadonlySet<Socket> {
  return connections.get(server) ?? new Set();
}

/**
 * Stops accepting connections. Returns a function that closes the open ones after their current
 * response and resolves when the last has closed. Responses must have `Connection: close` from then
 * on, and not earlier, because that header makes clients reconnect. A client that sends again gets
 * that header with a response instead of a broken connection.
 */
export async function stopListening(server: Server): Promise<() => Promise<void>> {
  await acceptBacklog(server);
  // Node's own `close` destroys idle connections at once, with any request that a client just
  // sends.
  const closed = new Promise<void>(
    (done) => void Listener.prototype.close.call(server, () => done()),
  );
  return () => closeConnections(server, closed);
}

async function closeConnections(server: Server, closed: Promise<void>): Promise<void> {
  server.headersTimeout = GRACE_MS;
  await Promise.race([closed, setTimeout(GRACE_MS)]);
  // Runs in the check phase, right after received data was read.
  const closeIdle = () => {
    // Node regards a connection as idle when its response has ended, even before it is sent.
    if (![...connectionsOf(server)].some(isSending)) server.closeIdleConnections();
  };
  const closing = setInterval(() => setImmediate(closeIdle), CHECK_INTERVAL_MS);
  await closed;
  clearInterval(closing);
}

function isSending(socket: Socket): boolean {
  const res = responseOn(socket);
  return res?.writableEnded === true && !res.writableFinished;
}

// Waits for connections that the kernel has accepted: Node takes one per turn of the event loop.
async function acceptBacklog(server: Server): Promise<void> {
  let quietTurns = 0;
  const onConnection = () => (quietTurns = 0);
  server.on('connection', onConnection);
  // The current turn may already have polled for connections.
  for (; quietTurns < QUIET_TURNS; quietTurns++) await turn();
  server.off('connection', onConnection);
}
