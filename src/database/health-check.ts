import { setImmediate, setTimeout } from 'node:timers/promises';
import type { ClientConfig } from 'pg';
import type { Logger } from 'pino';
import { counter } from '../core/metrics.ts';
import { Connection } from './connection.ts';

const changes = counter(
  'shopfront_database_changes_total',
  'Times that the database was another server than before, or had been restarted.',
);

/** Interval between two checks, in ms. */
const INTERVAL_MS = 250;
/** Time without a response until the database counts as down, in ms. */
const TIMEOUT_MS = 1_500;
/** Interval between new connections, in ms: the address may lead to another server. */
const RENEWAL_MS = 1_000;
/** Returns when the primary was started, in microseconds, which identifies it; null for a standby. */
const SERVER =
  'select case when not pg_is_in_recovery() then pg_postmaster_start_time()::text end as server';
/** PostgreSQL, appendix A. */
const TOO_MANY_CONNECTIONS = '53300';

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
  /** False while the database is down. */
  isHealthy = true;
  private isClosed = false;
  private connection: Connection | undefined;
  private openedAt = 0;
  /** Identity of the last primary. */
  private server: string | undefined;
  private checking: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private onChange: OnChange = () => undefined;

  constructor(
    private readonly config: ClientConfig,
    /** Whether another server may be the primary while a connection stays open. */
    private readonly mayMove: boolean,
    private readonly log: Logger,
  ) {}

  get isRunning(): boolean {
    return this.timer !== undefined;
  }

  /** Starts the checks. Until then the database counts as healthy. */
  start(onChange: OnChange): void {
    this.onChange = onChange;
    this.timer ??= setInterval(() => void this.check(), INTERVAL_MS).unref();
    void this.check();
  }

  async close(): Promise<void> {
    this.isClosed = true;
    clearInterval(this.timer);
    this.drop();
    await this.checking;
  }

  private check(): Promise<void> {
    return (this.checking ??= this.checkOnce().finally(() => (this.checking = undefined)));
  }

  private async checkOnce(): Promise<void> {
    const server = await Promise.race([this.query(), timeLimit()]);
    // The next check opens a new connection.
    if (server === undefined) this.drop();
    if (!this.isClosed) this.update(server);
  }

  private update(server: string | undefined): void {
    const [wasHealthy, isHealthy] = [this.isHealthy, server !== undefined];
    const isOther = Boolean(server && this.server) && server !== this.server;
    const hasMoved = isOther && wasHealthy;
    if (isOther) changes.value++;
    if (server) this.server = server;
    if (isHealthy === wasHealthy && !hasMoved) return;
    const event = hasMoved ? 'database.moved' : isHealthy ? 'database.up' : 'database.down';
    this.log.warn(
      { event },
      `Database is ${hasMoved ? 'another server, or was restarted' : isHealthy ? 'up again' : 'down'}`,
    );
    // Nothing that the previous server has begun may go on.
    if (hasMoved) this.onChange(false, true);
    this.isHealthy = isHealthy;
    this.onChange(isHealthy, hasMoved);
  }

  // Returns the identity of the primary, or undefined if none responds. A lost connection does not
  // mean that the database is down; failure to reopen it does.
  private async query(): Promise<string | undefined> {
    const current = this.connection;
    const isOutdated = this.mayMove && performance.now() - this.openedAt >= RENEWAL_MS;
    if (current && !isOutdated) {
      try {
        return await identityOf(current);
      } catch {
        // The check has ended.
        if (this.connection !== current) return undefined;
      }
    }
    this.drop();
    return this.isClosed ? undefined : this.open();
  }

  private async open(): Promise<string | undefined> {
    const connection = new Connection({
      ...this.config,
      application_name: 'shopfront health check',
    });
    this.connection = connection;
    this.openedAt = performance.now();
    // Checks at once, not after the rest of the interval.
    connection.on('error', () => void (this.connection === connection && this.check()));
    try {
      await connection.connect();
      return await identityOf(connection);
    } catch (error) {
      // Statements of a client without a connection would wait for one.
      if (this.connection === connection) this.drop();
      // The server is up if it rejects a connection because of too many clients.
      const isFull =
        error instanceof Error && 'code' in error && error.code === TOO_MANY_CONNECTIONS;
      return isFull ? (this.server ?? '') : undefined;
    }
  }

  private drop(): void {
    this.connection?.destroy();
    this.connection = undefined;
  }
}

// After a long block of this process, a response may have arrived that it reads in this turn.
async function timeLimit(): Promise<undefined> {
  await setTimeout(TIMEOUT_MS, undefined, { ref: false });
  await setImmediate();
}

async function identityOf(connection: Connection): Promise<string | undefined> {
  const { rows } = await connection.query<{ server: string | null }>(SERVER);
  return rows[0]?.server ?? undefined;
}
