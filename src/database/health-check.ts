import { Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import pg, { type ClientConfig } from 'pg';
import type { Logger } from 'pino';

/** Interval between two checks, in ms. */
const INTERVAL_MS = 250;
/** Number of intervals without a response until the database counts as down: 1.5 s. */
const MAX_INTERVALS = 6;
/** Name in pg_stat_activity. */
const NAME = 'shopfront health check';

/** Called when the database goes down, and when it is up again. */
export type OnChange = (isHealthy: boolean) => void;

/**
 * Checks the database repeatedly, on a separate connection. A database that is frozen, or whose
 * machine is gone, sends nothing: without this check, each request would wait for its own time
 * limit.
 */
export class HealthCheck {
  private healthy = true;
  private closed = false;
  private client: pg.Client | undefined;
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
      const answered = await this.check();
      this.update(answered);
      for (const resolve of waiters) resolve(answered);
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

  private update(isHealthy: boolean): void {
    if (isHealthy === this.healthy || this.closed) return;
    this.healthy = isHealthy;
    if (isHealthy) this.log.info({ event: 'database.up' }, 'Database is up again');
    else
      this.log.warn(
        { event: 'database.down' },
        'Database is down; requests that need it are rejected until it is up',
      );
    this.onChange(isHealthy);
  }

  private async check(): Promise<boolean> {
    const signal = this.nextWait();
    const answered = await Promise.race([this.query(signal), timeLimit(signal)]);
    this.turn.abort();
    // The next check opens a new connection.
    if (!answered) this.drop();
    return answered;
  }

  // A lost connection does not mean that the database is down; failure to reopen it does.
  private async query(signal: AbortSignal): Promise<boolean> {
    if (this.client) {
      try {
        await this.client.query('select 1');
        return true;
      } catch {
        if (signal.aborted) return false;
        this.drop();
      }
    }
    try {
      const client = this.open();
      await client.connect();
      await client.query('select 1');
      return true;
    } catch (error) {
      if (!signal.aborted) this.drop();
      return isFull(error);
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
async function timeLimit(signal: AbortSignal): Promise<false> {
  try {
    for (let turn = 0; turn < MAX_INTERVALS; turn++) {
      await setTimeout(INTERVAL_MS, undefined, { signal, ref: false });
      await setImmediate();
    }
  } catch {
    // The check has ended.
  }
  return false;
}

// A server that rejects a connection because of too many clients is up (PostgreSQL, 53300).
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '53300';
}
