import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { LRUCache } from 'lru-cache';
import { connectionsOf } from './drain.ts';

/** Maximum memory of all connections together, in bytes. */
export const MAX_BYTES = 64_000_000;
/** Interval between checks, in ms. A client can receive a long response in less. */
const CHECK_INTERVAL_MS = 1_000;
/** Time for which the networks of a check above the maximum are known, in ms, and their number. */
const KNOWN_MS = 10_000;
const MAX_KNOWN = 10_000;
/** Number of connections that are destroyed before others are served, because each takes time. */
const BATCH = 200;

/**
 * A connection, its memory in bytes, the network of its client, and whether it held memory at the
 * last check.
 */
interface Held {
  socket: Socket;
  bytes: number;
  network: string;
  isOld: boolean;
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
  const known = new LRUCache<string, true>({ max: MAX_KNOWN, ttl: KNOWN_MS });
  let before = new WeakSet<Socket>();
  const check = () => {
    const all = [...connectionsOf(server)]
      .map((socket) => ({ socket, bytes: use.bytesOf(socket) }))
      .filter(({ bytes }) => bytes > 0);
    // A client can make it take time to find its network.
    const isExceeded = sumOf(all) > MAX_BYTES;
    const held = (isExceeded ? all : []).map(({ socket, bytes }) => ({
      socket,
      bytes,
      network: use.networkOf(socket),
      isOld: before.has(socket),
    }));
    // Responses that a new client receives in less than a second cost nobody a connection.
    const counted = held.filter(({ network }) => known.has(network));
    before = new WeakSet(all.map(({ socket }) => socket));
    for (const { network } of held) known.set(network, true);
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

// Returns connections of at least `excess` bytes. Each is one of the network that then uses most: of
// its old ones, if any, that with most bytes.
function mostFirst(held: readonly Held[], excess: number): Socket[] {
  const networks = Map.groupBy(held, ({ network }) => network).values();
  const inOrder = [...networks]
    .flatMap((list) => {
      // What its network uses when it is the next to be destroyed.
      let used = 0;
      return list
        .toSorted(
          (one, other) => Number(one.isOld) - Number(other.isOld) || one.bytes - other.bytes,
        )
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
