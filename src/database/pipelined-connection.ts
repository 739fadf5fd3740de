import { Socket } from 'node:net';
import { Client, type ClientConfig } from 'pg';
import type { Logger } from 'pino';
import type { Cell } from './sql.ts';
import type { RawQuery } from './raw-query.ts';

/** Maximum number of pending statements per connection. */
const MAX_WAITING = 100;
/**
 * Time without a response, in ms, after which pending statements run elsewhere: one blocked
 * statement blocks all behind it.
 */
const STALL_MS = 500;
/** Delay before a lost connection is reopened, in ms. */
const REOPEN_MS = 1_000;

/**
 * A connection that many statements share. Each is sent while others are pending, and those of one
 * turn of the event loop in one write. Opened on first use, and reopened after a loss.
 */
export class PipelinedConnection {
  private client: Client | undefined;
  private socket: Socket | undefined;
  private opening: Promise<void> | undefined;
  private closed = false;
  private notBefore = 0;
  private waiting = 0;
  private respondedAt = 0;
  private isCorked = false;
  private stallTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly config: ClientConfig,
    private readonly log: Logger,
    /** Cancels the running statement of this connection. */
    private readonly cancel: (client: Client) => void,
  ) {}

  /**
   * Returns the statement's rows, or undefined if it must run elsewhere. Calls `elsewhere` if the
   * connection is lost.
   */
  run(statement: RawQuery, elsewhere: () => Promise<Cell[][]>): Promise<Cell[][]> | undefined {
    const { client } = this;
    if (!client) {
      if (!this.opening && !this.closed && Date.now() >= this.notBefore) this.opening = this.open();
      return undefined;
    }
    if (this.waiting >= MAX_WAITING) return undefined;
    if (this.waiting++ === 0) this.respondedAt = performance.now();
    this.watchForStall();
    this.cork();
    return new Promise((done, fail) => {
      statement.callback = (error, rows) => {
        const isCurrent = this.client === client;
        if (isCurrent) {
          this.waiting--;
          this.respondedAt = performance.now();
        }
        if (!error) done(rows);
        else if (isCurrent && !isServerClosing(error) && !isOutdated(error)) fail(error);
        else done(elsewhere());
      };
      client.query(statement);
    });
  }

  /** Drops the connection. Pending statements run elsewhere; the next one opens a connection. */
  renew(): void {
    if (this.client) this.drop('Opened before an outage');
    this.notBefore = 0;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.opening;
    await this.client?.end();
  }

  private cork(): void {
    const { socket } = this;
    if (this.isCorked || !socket) return;
    this.isCorked = true;
    socket.cork();
    setImmediate(() => {
      this.isCorked = false;
      socket.uncork();
    });
  }

  private watchForStall(): void {
    this.stallTimer ??= setTimeout(() => {
      this.stallTimer = undefined;
      if (this.waiting === 0) return;
      if (performance.now() - this.respondedAt >= STALL_MS) this.drop('No response in time');
      else this.watchForStall();
    }, STALL_MS).unref();
  }

  private drop(reason: string): void {
    const { socket, client } = this;
    this.reset();
    // Otherwise the backend would notice the closed connection only after its blocked statement.
    if (client) this.cancel(client);
    socket?.destroy(new Error(reason));
  }

  private reset(): void {
    this.client = undefined;
    this.socket = undefined;
    this.waiting = 0;
    this.notBefore = Date.now() + REOPEN_MS;
  }

  private async open(): Promise<void> {
    const socket = new Socket();
    const client = new Client({ ...this.config, pipeline: true, stream: () => socket });
    const onLost = () => {
      if (this.client === client) this.reset();
    };
    client.on('error', (error) => {
      onLost();
      this.log.warn({ err: error }, 'Pipelined database connection lost');
    });
    client.on('end', onLost);
    try {
      await client.connect();
      this.client = client;
      this.socket = socket;
      // The new socket is not corked yet.
      this.isCorked = false;
    } catch {
      // The pool meets the same error, and reports it.
      socket.destroy();
      this.reset();
    } finally {
      this.opening = undefined;
    }
  }
}

/**
 * Returns whether a prepared statement is invalid: its table changed, or none exists (0A000,
 * 26000).
 */
export function isOutdated(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === '26000' || error.code === '0A000')
  );
}

/** Returns whether the connection was lost before or during a statement: its outcome is unknown. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error)
    return isServerClosing(error) || error.code === 'ECONNRESET' || error.code === 'EPIPE';
  // Errors of the driver.
  return /^(Connection terminated( unexpectedly)?|Client (was closed|has encountered a connection error) and is not queryable)$/.test(
    error.message,
  );
}

// PostgreSQL's codes 57P: the server closes the connection, whatever the statement.
function isServerClosing(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('57P');
}
