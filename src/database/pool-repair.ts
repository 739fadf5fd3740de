import type { Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { ClientBase, Pool, PoolClient } from 'pg';

/** How long a statement from before an outage may take to end after it, in ms. */
const PATIENCE_MS = 2_000;
/** How long whoever has a connection may take to give it back once it is lost, in ms. */
const GIVE_BACK_MS = 100;

/** Closes the connections from before. */
export type Renew = () => Promise<void>;

/**
 * Looks after the connections of a pool. A connection that is lost is given back where whoever has it does not: the ORM forgets one whose
 * BEGIN or ROLLBACK fails, and the pool would miss it for ever. What this returns closes those that are idle, and, a while later, those that are
 * still in use: after an outage none from before can be trusted, for the peer may have gone without a word.
 */
export function lookAfter(pool: Pool): Renew {
  const idle = new Set<PoolClient>();
  /** With the number of the checkout. */
  const busy = new Map<PoolClient, number>();
  let checkouts = 0;
  pool.on('connect', (client) => client.once('end', () => void giveBack(client)));
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
  return async () => {
    const before = [...busy];
    idle.forEach(lose);
    await setTimeout(PATIENCE_MS, undefined, { ref: false });
    for (const [client, checkout] of before) if (busy.get(client) === checkout) lose(client);
  };

  async function giveBack(client: PoolClient): Promise<void> {
    if (!busy.has(client)) return;
    await setTimeout(GIVE_BACK_MS, undefined, { ref: false });
    if (!busy.has(client)) return;
    client.release(new Error('The connection was lost'));
    client.release = () => undefined;
  }
}

/**
 * Keeps callers waiting for a connection while others get one: the pool is busy then, not stuck. The pool's own time limit ends a wait
 * only if no connection was acquired in its second half.
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
  pool.connect = ((...args: []) => (args.length > 0 ? connect(...args) : retrying())) as Pool['connect'];
}

/** Returns whether all connections of a pool were in use for as long as its time limit. */
export function isAcquireTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === 'timeout exceeded when trying to connect';
}

/** Breaks a connection, as if the peer had closed it: its pool lets go of it, and what waits for its answer fails. */
export function lose(client: ClientBase): void {
  // Known to the driver, and not to its types.
  (client as unknown as { connection: { stream: Socket } }).connection.stream.destroy();
}
