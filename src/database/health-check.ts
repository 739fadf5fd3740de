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
/** Time in ms for other hosts to respond after the first primary has. */
const OTHERS_MS = 500;
/** Returns when the primary was started, in microseconds, which identifies it; null for a standby. */
const SERVER =
  'case when not pg_is_in_recovery() then pg_postmaster_start_time()::text end as server';
/** Of a primary, the first eight characters are its timeline, which a promotion increases. */
const TIMELINE =
  'case when not pg_is_in_recovery() then pg_walfile_name(pg_current_wal_lsn()) end as timeline';

/**
 * Called when the database goes down, and when it is up again. `hasMoved` if another server responds
 * while the previous one may still be running.
 */
export type OnChange = (isHealthy: boolean, hasMoved: boolean) => void;

interface HealthCheckOptions {
  config: ClientConfig;
  /** URL of each host. */
  urls: readonly string[];
  /** Whether another server may be the primary while a connection stays open. */
  mayMove: boolean;
  /** Called with the URL of the primary when the check has connected to it. */
  onHost: (url: string) => void;
  log: Logger;
}

/** A connection to a primary. */
interface Primary {
  url: string;
  client: pg.Client;
  socket: Socket;
  /** Its identity. */
  server: string;
  /** Its timeline, if there are several hosts. */
  timeline: string;
}

/**
 * Checks repeatedly, on a separate connection, whether a primary responds. A database that is
 * frozen, or whose machine is gone, sends nothing: without this check, each request would wait for
 * its own time limit. After a failover, the address may lead to a standby or to another primary.
 * Of several hosts, uses the primary with the latest timeline.
 */
export class HealthCheck {
  private healthy = true;
  private closed = false;
  private client: pg.Client | undefined;
  private openedAt = 0;
  /** Identity of the last primary. */
  private server: string | undefined;
  /** Sockets of all open connections of the check. */
  private readonly sockets = new Set<Socket>();
  /** Aborted to end the current wait. */
  private turn = new AbortController();
  private running: Promise<void> | undefined;
  private sleeping = false;
  /** Receive the result of the next check, not of one that had already started. */
  private waiters: ((isHealthy: boolean) => void)[] = [];
  private onChange: OnChange = () => undefined;

  constructor(private readonly options: HealthCheckOptions) {}

  get isRunning(): boolean {
    return this.running !== undefined;
  }

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
  start(onChange: OnChange): void {
    this.onChange = onChange;
    this.running ??= this.run();
  }

  /** Finds the primary of several hosts before the checks have started. Throws if there is none. */
  async locate(): Promise<void> {
    if (this.options.urls.length === 1) return;
    const found = await Promise.race([
      this.openPrimary(),
      setTimeout(MAX_INTERVALS * INTERVAL_MS, undefined, { ref: false }),
    ]).finally(() => this.drop());
    if (!found) throw new Error('No host of DATABASE_URL responds as a primary in time');
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
      this.options.log.warn(
        { event: 'database.moved' },
        'Database is another server, or was restarted',
      );
      // Nothing that the previous server has begun may go on.
      this.onChange(false, true);
    } else if (isHealthy === this.healthy) {
      return;
    } else if (isHealthy) {
      this.options.log.info({ event: 'database.up' }, 'Database is up again');
    } else {
      this.options.log.warn(
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
    const isOutdated = this.options.mayMove && performance.now() - this.openedAt >= RENEWAL_MS;
    if (this.client && !isOutdated) {
      try {
        return (await identityOf(this.client, SERVER)).server ?? undefined;
      } catch {
        if (signal.aborted) return undefined;
      }
    }
    this.drop();
    try {
      return (await this.openPrimary()).server;
    } catch (error) {
      if (!signal.aborted) this.drop();
      return isFull(error) ? (this.server ?? '') : undefined;
    }
  }

  /** Opens a connection to the primary. Throws if no host is one. */
  private async openPrimary(): Promise<Primary> {
    this.openedAt = performance.now();
    const { urls, onHost } = this.options;
    const found: Primary[] = [];
    const attempts = urls.map(async (url) => void found.push(await this.open(url)));
    await Promise.any(attempts);
    await Promise.race([
      Promise.allSettled(attempts),
      setTimeout(OTHERS_MS, undefined, { ref: false }),
    ]);
    const latest = found.reduce((one, other) => (other.timeline > one.timeline ? other : one));
    if (latest.socket.destroyed) throw new Error('The check has ended');
    this.drop(latest.socket);
    this.client = latest.client;
    onHost(latest.url);
    return latest;
  }

  /** Opens a connection to the host. Throws if it is no primary. */
  private async open(url: string): Promise<Primary> {
    const { config, urls } = this.options;
    const socket = new Socket();
    this.sockets.add(socket);
    const client = new pg.Client({
      ...config,
      connectionString: url,
      application_name: NAME,
      stream: () => socket,
    });
    client.on('error', () => {
      // Checks at once, not after the rest of the interval.
      if (this.sleeping && this.client === client) this.turn.abort();
    });
    await client.connect();
    const columns = urls.length > 1 ? `${SERVER}, ${TIMELINE}` : SERVER;
    const { server, timeline } = await identityOf(client, columns);
    if (server === null) throw new Error('The server is a standby');
    return { url, client, socket, server, timeline: timeline?.slice(0, 8) ?? '' };
  }

  /** Closes all connections but this one. */
  private drop(but?: Socket): void {
    this.client = undefined;
    for (const socket of this.sockets) if (socket !== but) socket.destroy();
    this.sockets.clear();
    if (but) this.sockets.add(but);
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

async function identityOf(
  client: pg.Client,
  columns: string,
): Promise<{ server: string | null; timeline?: string | null }> {
  const { rows } = await client.query<{ server: string | null }>(`select ${columns}`);
  return rows[0] ?? { server: null };
}

// A server that rejects a connection because of too many clients is up (PostgreSQL, 53300).
function isFull(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.some(isFull);
  return error instanceof Error && 'code' in error && error.code === '53300';
}
