import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { connectionsOf } from './drain.ts';

/**
 * Maximum memory of the responses that clients have not received yet, and of the requests that wait
 * for these responses, on all connections together, in bytes.
 */
export const MAX_BYTES = 64_000_000;
const CHECK_INTERVAL_MS = 1_000;

/** A connection at a check. */
interface Checked {
  socket: Socket;
  /** Memory of its responses and requests, in bytes. */
  bytes: number;
  /** Number of sent bytes. */
  sent: number;
}

/**
 * Checks the memory of the connections each second. Above the maximum, destroys the slowest of
 * those that also used memory at the last check, until half of it is free, and calls `onDestroyed`
 * for each. The limits on each connection alone do not bound their sum. `requestBytes` returns the
 * memory of the requests of a connection.
 */
export function limitMemory(
  server: Server,
  requestBytes: (socket: Socket) => number,
  onDestroyed: () => void,
): void {
  let last = new Map<Socket, Checked>();
  const check = () => {
    const connections = [...connectionsOf(server)].map((socket) => ({
      socket,
      bytes: socket.writableLength + requestBytes(socket),
      sent: socket.bytesWritten - socket.writableLength,
    }));
    let sum = connections.reduce((total, { bytes }) => total + bytes, 0);
    if (sum > MAX_BYTES) {
      for (const { socket, bytes } of slowestFirst(connections, last)) {
        socket.destroy();
        onDestroyed();
        sum -= bytes;
        if (sum <= MAX_BYTES / 2) break;
      }
    }
    last = new Map(connections.map((connection) => [connection.socket, connection]));
  };
  const timer = setInterval(check, CHECK_INTERVAL_MS).unref();
  server.once('close', () => clearInterval(timer));
}

// Returns the connections that used memory at the last check, too, the slowest first.
function slowestFirst(
  connections: readonly Checked[],
  last: ReadonlyMap<Socket, Checked>,
): Checked[] {
  const rateOf = ({ socket, sent }: Checked) => sent - (last.get(socket)?.sent ?? 0);
  return connections
    .filter(({ socket, bytes }) => bytes > 0 && (last.get(socket)?.bytes ?? 0) > 0)
    .toSorted((one, other) => rateOf(one) - rateOf(other));
}
