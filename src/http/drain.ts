import type { Server } from 'node:http';
import { Server as Listener, type Socket } from 'node:net';
import { setImmediate as turn, setTimeout } from 'node:timers/promises';
import { responseOn } from './in-flight.ts';

/** How long a client that has a connection open may take to send its next request on it, and to send the head of one that it has begun. */
export const GRACE_MS = 1_000;
const LOOK_EVERY_MS = 100;
const QUIET_TURNS = 3;

const connections = new WeakMap<Server, Set<Socket>>();

/** Notes which connections a server has, for `stopListening`. */
export function trackConnections(server: Server): void {
  const open = new Set<Socket>();
  connections.set(server, open);
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
}

/**
 * Takes no more connections, and returns what has all answered that comes in on those that there are, and resolves when the last has closed. From
 * then on, answers have to say `Connection: close`, and not before, for who is told so connects anew: so a client that sends again
 * learns of the end by an answer, and not by a connection that breaks.
 */
export async function stopListening(server: Server): Promise<() => Promise<void>> {
  await accepted(server);
  // Node's own `close` breaks idle connections at once, and with them what clients are just sending there.
  const closed = new Promise<void>((done) => void Listener.prototype.close.call(server, () => done()));
  return () => closeConnections(server, closed);
}

async function closeConnections(server: Server, closed: Promise<void>): Promise<void> {
  server.headersTimeout = GRACE_MS;
  await Promise.race([closed, setTimeout(GRACE_MS)]);
  // In the check phase: right after what has arrived was read.
  const closeIdle = () => {
    // Node takes a connection for idle whose response has ended and not been sent yet.
    if (![...(connections.get(server) ?? [])].some(isSending)) server.closeIdleConnections();
  };
  const closing = setInterval(() => setImmediate(closeIdle), LOOK_EVERY_MS);
  await closed;
  clearInterval(closing);
}

function isSending(socket: Socket): boolean {
  const res = responseOn(socket);
  return res?.writableEnded === true && !res.writableFinished;
}

// What the kernel has accepted already comes to us one connection a turn of the loop.
async function accepted(server: Server): Promise<void> {
  let turnsWithout = 0;
  const note = () => (turnsWithout = 0);
  server.on('connection', note);
  // The turn that this begins in may have looked for connections before.
  for (; turnsWithout < QUIET_TURNS; turnsWithout++) await turn();
  server.off('connection', note);
}
