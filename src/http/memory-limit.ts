import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { connectionsOf } from './drain.ts';

/** Maximum memory of all connections together, in bytes. */
export const MAX_BYTES = 64_000_000;
/** Interval between checks, in ms. A client can receive a long response in less. */
const CHECK_INTERVAL_MS = 1_000;
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
 * calls `onDestroyed` for each. A network counts from the second check above the maximum.
 */
export function limitMemory(server: Server, use: MemoryUse, onDestroyed: () => void): void {
  let before = new Set<string>();
  const check = () => {
    const all = [...connectionsOf(server)]
      .map((socket) => ({ socket, bytes: use.bytesOf(socket) }))
      .filter(({ bytes }) => bytes > 0);
    // A client can make it take time to find its network.
    const isExceeded = sumOf(all) > MAX_BYTES;
    const held = isExceeded
      ? all.map(({ socket, bytes }) => ({ socket, bytes, network: use.networkOf(socket) }))
      : [];
    // Responses that a new client receives in less than a second cost nobody a connection.
    const counted = held.filter(({ network }) => before.has(network));
    before = new Set(held.map(({ network }) => network));
    const excess = sumOf(counted) - MAX_BYTES;
    if (excess > 0) destroy([...mostFirst(counted, excess)], onDestroyed);
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

// Yields the connection with most bytes of the network with most bytes, until they are enough.
function* mostFirst(held: readonly Held[], excess: number): Generator<Socket> {
  const networks = [...Map.groupBy(held, ({ network }) => network).values()].map((list) => ({
    bytes: sumOf(list),
    list: list.toSorted((one, other) => one.bytes - other.bytes),
  }));
  for (let left = excess; left > 0;) {
    let [most] = networks;
    for (const network of networks) if (most && network.bytes > most.bytes) most = network;
    const next = most?.list.pop();
    if (!most || !next) return;
    most.bytes -= next.bytes;
    left -= next.bytes;
    yield next.socket;
  }
}

function sumOf(held: readonly Pick<Held, 'bytes'>[]): number {
  return held.reduce((sum, { bytes }) => sum + bytes, 0);
}
