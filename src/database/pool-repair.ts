import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { ClientBase, Pool, PoolClient } from 'pg';

/** Maximum time for a statement from before an outage to end after it, in ms. */
const BUSY_TIMEOUT_MS = 2_000;
/** Maximum time for the holder of a lost connection to release it, in ms. */
const RELEASE_TIMEOUT_MS = 100;

/** Closes all earlier connections; those in use at once if the database has moved. */
export type Renew = (hasMoved?: boolean) => Promise<void>;

/**
 * Releases lost connections that their holder does not release: the ORM forgets a connection whose
 * BEGIN or ROLLBACK fails, and the pool would never get it back. Returns a function that closes
 * idle connections, and 2 s later earlier ones still in use: after an outage no earlier connection
 * can be trusted, because the peer may be gone without notice.
 */
export function repairPool(pool: Pool): Renew {
  const idle = new Set<PoolClient>();
  /** Clients in use, with the number of their checkout. */
  const busy = new Map<PoolClient, number>();
  let checkouts = 0;
  pool.on('connect', (client) => client.once('end', () => void releaseLost(client)));
  pool.on('acquire', (client) => {
    idle.delete(client);
    busy.set(client, (checkouts += 1));
  });
  pool.on('release', (_error, client) => {
    busy.delete(client);
    idle.add(client);
  });
  pool.on('remove', (client) => void (idle.delete(client) || busy.delete(client)));
  retryTimeouts(pool);
  return async (hasMoved) => {
    const before = [...busy];
    idle.forEach(destroyConnection);
    if (!hasMoved) await setTimeout(BUSY_TIMEOUT_MS, undefined, { ref: false });
    for (const [client, checkout] of before)
      if (busy.get(client) === checkout) destroyConnection(client);
  };

  async function releaseLost(client: PoolClient): Promise<void> {
    if (!busy.has(client)) return;
    await setTimeout(RELEASE_TIMEOUT_MS, undefined, { ref: false });
    if (!busy.has(client)) return;
    client.release(new Error('The connection was lost'));
    client.release = () => undefined;
  }
}

/**
 * Retries the wait for a connection while others acquire one: the pool is busy then, not stuck. The
 * pool's time limit ends a wait only if no connection was acquired in its second half.
 */
function retryTimeouts(pool: Pool): void {
  const connect = pool.connect.bind(pool) as () => Promise<PoolClient>;
  let acquiredAt = 0;
  pool.on('acquire', () => (acquiredAt = performance.now()));
  const retrying = async (): Promise<PoolClient> => {
    try {
      return await connect();
    } catch (error) {
      const limit = pool.options.connectionTimeoutMillis ?? 0;
      if (!isAcquireTimeout(error) || performance.now() - acquiredAt > limit / 2) throw error;
      return retrying();
    }
  };
  // The pool's own `query` passes a callback.
  pool.connect = ((...args: []) =>
    args.length > 0 ? connect(...args) : retrying()) as Pool['connect'];
}

/** Returns whether all connections of a pool were in use for as long as its time limit. */
function isAcquireTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect';
}

/** Breaks a connection as if the peer had closed it. The pool drops it; pending statements fail. */
export function destroyConnection(client: ClientBase): void {
  // The driver's types omit it.
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
