import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { connectionsOf } from './drain.ts';

/** Maximum memory of all connections together, in bytes. */
export const MAX_BYTES = 64_000_000;
/** Interval between checks, in ms. A client can receive a long response in less. */
const CHECK_INTERVAL_MS = 1_000;
/** Number of checks for which the networks of a check above the maximum are known. */
const KNOWN_CHECKS = 10;
/** Number of connections that are destroyed before others are served, because each takes time. */
const BATCH = 200;

/** A connection, its memory in bytes and the network of its client. */
interface Held {
  socket: Socket;
  bytes: number;
  network: string;
}

/** What `limitMemory` must know of a connection. */
export interface MemoryUse {
  /** Returns its memory in bytes. */
  bytesOf: (socket: Socket) => number;
  /** Returns the network of its client. */
  networkOf: (socket: Socket) => string;
}

/**
 * Checks the memory of the connections each second, because the limits on each connection do not
 * bound their sum. Above the maximum, destroys connections of the network that uses most first, and
 * calls `onDestroyed` for each. A network counts if a check above the maximum has seen it in the
 * last ten seconds.
 */
export function limitMemory(server: Server, use: MemoryUse, onDestroyed: () => void): void {
  /** The number of the last such check that saw a network. */
  const lastSeen = new Map<string, number>();
  let number = 0;
  const check = () => {
    number++;
    for (const [network, seen] of lastSeen)
      if (number - seen > KNOWN_CHECKS) lastSeen.delete(network);
    const all = [...connectionsOf(server)]
      .map((socket) => ({ socket, bytes: use.bytesOf(socket) }))
      .filter(({ bytes }) => bytes > 0);
    // A client can make it take time to find its network.
    const isExceeded = sumOf(all) > MAX_BYTES;
    const held = (isExceeded ? all : []).map(({ socket, bytes }) => ({
      socket,
      bytes,
      network: use.networkOf(socket),
    }));
    // Responses that a new client receives in less than a second cost nobody a connection.
    const counted = held.filter(({ network }) => lastSeen.has(network));
    for (const { network } of held) lastSeen.set(network, number);
    const excess = sumOf(counted) - MAX_BYTES;
    if (excess > 0) destroy(mostFirst(counted, excess), onDestroyed);
  };
  const timer = setInterval(check, CHECK_INTERVAL_MS).unref();
  server.once('close', () => clearInterval(timer));
}

function destroy(sockets: readonly Socket[], onDestroyed: () => void): void {
  for (const socket of sockets.slice(0, BATCH)) {
    onDestroyed();
    socket.destroy();
  }
  if (sockets.length > BATCH) setImmediate(destroy, sockets.slice(BATCH), onDestroyed);
}

// Returns connections of at least `excess` bytes. Each is the one with most bytes of the network that
// then uses most.
function mostFirst(held: readonly Held[], excess: number): Socket[] {
  const networks = Map.groupBy(held, ({ network }) => network).values();
  const inOrder = [...networks]
    .flatMap((list) => {
      // What its network uses when it is the next to be destroyed.
      let used = 0;
      return list
        .toSorted((one, other) => one.bytes - other.bytes)
        .map(({ socket, bytes }) => ({ socket, bytes, used: (used += bytes) }));
    })
    .toSorted((one, other) => other.used - one.used);
  let left = excess;
  const count = inOrder.findIndex(({ bytes }) => (left -= bytes) <= 0) + 1;
  return inOrder.slice(0, count).map(({ socket }) => socket);
}

function sumOf(held: readonly Pick<Held, 'bytes'>[]): number {
  return held.reduce((sum, { bytes }) => sum + bytes, 0);
}
