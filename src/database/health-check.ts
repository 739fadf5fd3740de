import { Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import pg, { type ClientConfig } from 'pg';
import type { Logger } from 'pino';
import { counter } from '../core/metrics.ts';

const changes = counter(
  'shopfront_database_changes_total',
  'Times that the database was another server than before, or had been restarted.',
);

/** Interval between two checks, in ms. */
const INTERVAL_MS = 250;
/** Number of intervals without a response until the database counts as down: 1.5 s. */
const MAX_INTERVALS = 6;
/** Interval between new connections, in ms: the address may lead to another server. */
const RENEWAL_MS = 1_000;
/** Name in pg_stat_activity. */
const NAME = 'shopfront health check';
/** Returns when the primary was started, in microseconds, which identifies it; null for a standby. */
const QUERY =
  'select case when not pg_is_in_recovery() then pg_postmaster_start_time()::text end as server';

/**
 * Called when the database goes down, and when it is up again. `hasMoved` if another server responds
 * while the previous one may still be running.
 */
export type OnChange = (isHealthy: boolean, hasMoved: boolean) => void;

/**
 * Checks repeatedly, on a separate connection, whether a primary responds. A database that is
 * frozen, or whose machine is gone, sends nothing: without this check, each request would wait for
 * its own time limit. After a failover, the address may lead to a standby or to another primary.
 */
export class HealthCheck {
  private healthy = true;
  private closed = false;
  private client: pg.Client | undefined;
  private openedAt = 0;
  /** Identity of the last primary. */
  private server: string | undefined;
  private socket: Socket | undefined;
  /** Aborted to end the current wait. */
  private turn = new AbortController();
  private running: Promise<void> | undefined;
  private sleeping = false;
  /** Receive the result of the next check, not of one that had already started. */
  private waiters: ((isHealthy: boolean) => void)[] = [];

  constructor(
    private readonly config: ClientConfig,
    private readonly log: Logger,
    private readonly onChange: OnChange,
    /** Whether the address may lead to another server while a connection stays open. */
    private readonly mayMove: boolean,
  ) {}

  /** False while the database is down. */
  get isHealthy(): boolean {
    return this.healthy;
  }

  /** Returns whether the database responds now. Checks at once, unless it is known to be down. */
  async next(): Promise<boolean> {
    if (!this.healthy) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.waiters.push(resolve);
    if (this.sleeping) this.turn.abort();
    return promise;
  }

  /** Starts the checks. Until then the database counts as healthy. */
  start(): void {
    this.running ??= this.run();
  }

  async close(): Promise<void> {
    this.closed = true;
    this.turn.abort();
    await this.running;
    this.drop();
  }

  private async run(): Promise<void> {
    while (!this.closed) {
      const waiters = this.waiters.splice(0);
      const server = await this.check();
      this.update(server);
      for (const resolve of waiters) resolve(server !== undefined);
      if (this.waiters.length === 0) await this.sleep();
    }
    for (const resolve of this.waiters) resolve(false);
  }

  private async sleep(): Promise<void> {
    this.sleeping = true;
    await setTimeout(INTERVAL_MS, undefined, { signal: this.nextWait(), ref: false }).catch(
      () => undefined,
    );
    this.sleeping = false;
  }

  private nextWait(): AbortSignal {
    this.turn = new AbortController();
    if (this.closed) this.turn.abort();
    return this.turn.signal;
  }

  private update(server: string | undefined): void {
    if (this.closed) return;
    const isHealthy = server !== undefined;
    const isOther = isHealthy && this.server !== undefined && server !== this.server;
    if (isOther) changes.value++;
    const hasMoved = this.healthy && isOther;
    if (isHealthy) this.server = server;
    if (hasMoved) {
      this.log.warn({ event: 'database.moved' }, 'Database is another server, or was restarted');
      // Nothing that the previous server has begun may go on.
      this.onChange(false, true);
    } else if (isHealthy === this.healthy) {
      return;
    } else if (isHealthy) {
      this.log.info({ event: 'database.up' }, 'Database is up again');
    } else {
      this.log.warn(
        { event: 'database.down' },
        'Database is down; requests that need it are rejected until it is up',
      );
    }
    this.healthy = isHealthy;
    this.onChange(isHealthy, hasMoved);
  }

  // Returns the identity of the primary, or undefined if none responds.
  private async check(): Promise<string | undefined> {
    const signal = this.nextWait();
    const server = await Promise.race([this.query(signal), timeLimit(signal)]);
    this.turn.abort();
    // The next check opens a new connection.
    if (server === undefined) this.drop();
    return server;
  }

  // A lost connection does not mean that the database is down; failure to reopen it does.
  private async query(signal: AbortSignal): Promise<string | undefined> {
    const isOutdated = this.mayMove && performance.now() - this.openedAt >= RENEWAL_MS;
    if (this.client && !isOutdated) {
      try {
        return await identityOf(this.client);
      } catch {
        if (signal.aborted) return undefined;
      }
    }
    this.drop();
    try {
      const client = this.open();
      await client.connect();
      return await identityOf(client);
    } catch (error) {
      if (!signal.aborted) this.drop();
      return isFull(error) ? (this.server ?? '') : undefined;
    }
  }

  private open(): pg.Client {
    const socket = new Socket();
    const client = new pg.Client({ ...this.config, application_name: NAME, stream: () => socket });
    client.on('error', () => {
      // Checks at once, not after the rest of the interval.
      if (this.sleeping && this.client === client) this.turn.abort();
    });
    this.client = client;
    this.socket = socket;
    this.openedAt = performance.now();
    return client;
  }

  private drop(): void {
    this.client = undefined;
    this.socket?.destroy();
    this.socket = undefined;
  }
}

// Counted in turns of the event loop, not by the clock: after a long block of this process, a
// response may have arrived that it has not read yet.
async function timeLimit(signal: AbortSignal): Promise<undefined> {
  try {
    for (let turn = 0; turn < MAX_INTERVALS; turn++) {
      await setTimeout(INTERVAL_MS, undefined, { signal, ref: false });
      await setImmediate();
    }
  } catch {
    // The check has ended.
  }
  return undefined;
}

async function identityOf(client: pg.Client): Promise<string | undefined> {
  const { rows } = await client.query<{ server: string | null }>(QUERY);
  return rows[0]?.server ?? undefined;
}

// A server that rejects a connection because of too many clients is up (PostgreSQL, 53300).
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '53300';
}
