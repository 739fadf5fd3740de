import { Socket } from 'node:net';
import { Client, type ClientConfig } from 'pg';
import type { Logger } from 'pino';
import type { Cell } from './sql.ts';
import type { Asked } from './raw-query.ts';

/** How many statements may wait on one connection before others go elsewhere. */
const MAX_WAITING = 100;
/** After so many ms without an answer, what waits is taken elsewhere: one statement that is held up holds up all behind it. */
const STUCK_MS = 500;
/** How long to wait before a lost connection is opened anew, in ms. */
const REOPEN_MS = 1_000;

/**
 * A connection that many statements share: each is sent while others are still on their way, and those of one turn of the event
 * loop in one piece. It is opened when it is first needed, and anew when it was lost.
 */
export class Lane {
  private client: Client | undefined;
  private socket: Socket | undefined;
  private opening: Promise<void> | undefined;
  private closed = false;
  private notBefore = 0;
  private waiting = 0;
  private answeredAt = 0;
  private gathering = false;
  private guard: NodeJS.Timeout | undefined;

  constructor(
    private readonly config: ClientConfig,
    private readonly log: Logger,
    /** Cancels what the backend of this connection does. */
    private readonly cancel: (client: Client) => void,
  ) {}

  /** The statement's rows, or undefined where it has to go elsewhere. A read whose connection is lost is read by `elsewhere`. */
  run(statement: Asked, elsewhere: () => Promise<Cell[][]>): Promise<Cell[][]> | undefined {
    const { client } = this;
    if (!client) {
      if (!this.opening && !this.closed && Date.now() >= this.notBefore) this.opening = this.open();
      return undefined;
    }
    if (this.waiting >= MAX_WAITING) return undefined;
    if (this.waiting++ === 0) this.answeredAt = performance.now();
    this.watch();
    this.gather();
    return new Promise((done, fail) => {
      statement.callback = (error, rows) => {
        const isOurs = this.client === client;
        if (isOurs) {
          this.waiting--;
          this.answeredAt = performance.now();
        }
        if (!error) done(rows);
        else if (isOurs && !isGoodbye(error) && !isOutdated(error)) fail(error);
        else done(elsewhere());
      };
      client.query(statement);
    });
  }

  /** Has the next statement open a connection anew, and what waits on this one taken elsewhere. */
  renew(): void {
    if (this.client) this.drop('from before an outage');
    this.notBefore = 0;
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.opening;
    await this.client?.end();
  }

  private gather(): void {
    const { socket } = this;
    if (this.gathering || !socket) return;
    this.gathering = true;
    socket.cork();
    setImmediate(() => {
      this.gathering = false;
      socket.uncork();
    });
  }

  private watch(): void {
    this.guard ??= setTimeout(() => {
      this.guard = undefined;
      if (this.waiting === 0) return;
      if (performance.now() - this.answeredAt >= STUCK_MS) this.drop('held up for too long');
      else this.watch();
    }, STUCK_MS).unref();
  }

  private drop(reason: string): void {
    const { socket, client } = this;
    this.lose();
    // Its backend would not notice that nobody is there any more until what holds it up has gone.
    if (client) this.cancel(client);
    socket?.destroy(new Error(reason));
  }

  private lose(): void {
    this.client = undefined;
    this.socket = undefined;
    this.waiting = 0;
    this.notBefore = Date.now() + REOPEN_MS;
  }

  private async open(): Promise<void> {
    const socket = new Socket();
    const client = new Client({ ...this.config, pipeline: true, stream: () => socket });
    const lost = () => {
      if (this.client === client) this.lose();
    };
    client.on('error', (error) => {
      lost();
      this.log.warn({ err: error }, 'a shared connection to the database was lost');
    });
    client.on('end', lost);
    try {
      await client.connect();
      this.client = client;
      this.socket = socket;
      // Sent on by its own turns: see `gather`.
      this.gathering = false;
    } catch {
      // The pool meets the same trouble, and says so.
      this.lose();
    } finally {
      this.opening = undefined;
    }
  }
}

/** Whether what was prepared is of no use any more: its table has changed, or it was never prepared after all (0A000, 26000). */
export function isOutdated(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '26000' || error.code === '0A000');
}

/** Whether the connection was lost while something was asked, or before: nobody knows what came of it. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error) return isGoodbye(error) || error.code === 'ECONNRESET' || error.code === 'EPIPE';
  // The driver's own.
  return /^(Connection terminated( unexpectedly)?|Client (was closed|has encountered a connection error) and is not queryable)$/.test(
    error.message,
  );
}

// PostgreSQL's class 57P: the server takes the connection away, whatever is being asked.
function isGoodbye(error: Error): boolean {
  return 'code' in error && String(error.code).startsWith('57P');
}
