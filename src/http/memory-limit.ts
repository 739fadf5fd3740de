import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { connectionsOf } from './drain.ts';

/** Maximum memory of all connections together, in bytes. */
export const MAX_BYTES = 64_000_000;
/** Interval between checks, in ms. A client can receive a long response in less. */
const CHECK_INTERVAL_MS = 1_000;
/** Maximum number of connections that a check destroys, because each takes time. */
const MAX_DESTROYED = 200;

/** A connection and its memory in bytes. */
interface Held {
  socket: Socket;
  bytes: number;
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
 * bound their sum. Above the maximum, destroys connections that also used memory at the last check,
 * those of the network that uses most first, and calls `onDestroyed` for each.
 */
export function limitMemory(server: Server, use: MemoryUse, onDestroyed: () => void): void {
  let before = new Set<Socket>();
  const check = () => {
    const held = [...connectionsOf(server)]
      .map((socket) => ({ socket, bytes: use.bytesOf(socket) }))
      .filter(({ bytes }) => bytes > 0);
    let sum = sumOf(held);
    if (sum > MAX_BYTES) {
      let destroyed = 0;
      const candidates = held.filter(({ socket }) => before.has(socket));
      for (const { socket, bytes } of mostFirst(candidates, use)) {
        socket.destroy();
        onDestroyed();
        sum -= bytes;
        if (sum <= MAX_BYTES || ++destroyed === MAX_DESTROYED) break;
      }
    }
    before = new Set(held.map(({ socket }) => socket));
  };
  const timer = setInterval(check, CHECK_INTERVAL_MS).unref();
  server.once('close', () => clearInterval(timer));
}

// Yields the connection with most bytes of the network with most bytes, again and again.
function* mostFirst(held: readonly Held[], { networkOf }: MemoryUse): Generator<Held> {
  const networks = [...Map.groupBy(held, ({ socket }) => networkOf(socket)).values()].map(
    (list) => ({
      bytes: sumOf(list),
      list: list.toSorted((one, other) => one.bytes - other.bytes),
    }),
  );
  for (;;) {
    let [most] = networks;
    for (const network of networks) if (most && network.bytes > most.bytes) most = network;
    const next = most?.list.pop();
    if (!most || !next) return;
    most.bytes -= next.bytes;
    yield next;
  }
}

function sumOf(held: readonly Held[]): number {
  return held.reduce((sum, { bytes }) => sum + bytes, 0);
}
