import { Socket } from 'node:net';
import { setImmediate, setTimeout } from 'node:timers/promises';
import pg, { type ClientConfig } from 'pg';
import type { Logger } from 'pino';

/** How often the database is asked whether it is there, in ms. */
const EVERY_MS = 250;
/** So many of them without an answer, and it counts as silent: 1.5 s. */
const PATIENCE = 6;
/** A name of its own in pg_stat_activity. */
const NAME = 'shopfront pulse';

/** Is told when the database falls silent, and when it answers again. */
export type OnChange = (isBeating: boolean) => void;

/**
 * Asks the database over and over whether it is there, on a connection of its own. One that has been frozen, or whose machine has
 * gone, says nothing at all: without this, each request would find that out for itself, as slowly as its time limits allow.
 */
export class Pulse {
  private beating = true;
  private closed = false;
  private client: pg.Client | undefined;
  private socket: Socket | undefined;
  /** Aborted when what is waited for has come, or is waited for no longer. */
  private turn = new AbortController();
  private running: Promise<void> | undefined;
  private sleeping = false;
  /** They are told what comes of the next question, not of one that was on its way when they came. */
  private askers: ((isAnswered: boolean) => void)[] = [];

  constructor(
    private readonly config: ClientConfig,
    private readonly log: Logger,
    private readonly onChange: OnChange,
  ) {}

  /** False while the database does not answer. */
  get isBeating(): boolean {
    return this.beating;
  }

  /** Whether it answers now: asks at once where it is not known to be silent. */
  async next(): Promise<boolean> {
    if (!this.beating) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    this.askers.push(resolve);
    if (this.sleeping) this.turn.abort();
    return promise;
  }

  /** Begins to ask. Until then it counts as answering. */
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
      const askers = this.askers.splice(0);
      const answered = await this.isAnswered();
      this.tell(answered);
      for (const tell of askers) tell(answered);
      if (this.askers.length === 0) await this.sleep();
    }
    for (const tell of this.askers) tell(false);
  }

  private async sleep(): Promise<void> {
    this.sleeping = true;
    await setTimeout(EVERY_MS, undefined, { signal: this.nextTurn(), ref: false }).catch(() => undefined);
    this.sleeping = false;
  }

  private nextTurn(): AbortSignal {
    this.turn = new AbortController();
    if (this.closed) this.turn.abort();
    return this.turn.signal;
  }

  private tell(isAnswered: boolean): void {
    if (isAnswered === this.beating || this.closed) return;
    this.beating = isAnswered;
    if (isAnswered) this.log.info({ event: 'database.answers' }, 'the database answers again');
    else this.log.warn({ event: 'database.silent' }, 'the database does not answer; what needs it is refused until it does');
    this.onChange(isAnswered);
  }

  private async isAnswered(): Promise<boolean> {
    const signal = this.nextTurn();
    const answered = await Promise.race([this.ask(signal), patience(signal)]);
    this.turn.abort();
    // Whoever has not answered is not waited for again: the next attempt is a connection of its own.
    if (!answered) this.drop();
    return answered;
  }

  // A connection that is lost says little about the database; one that cannot be opened in its place does.
  private async ask(signal: AbortSignal): Promise<boolean> {
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
      // At once, rather than after what is left of the pause.
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

// Counted in turns of the event loop, and not by the clock: where this process itself was busy for long, an answer may have come in that it
// has not read yet.
async function patience(signal: AbortSignal): Promise<false> {
  try {
    for (let turn = 0; turn < PATIENCE; turn++) {
      await setTimeout(EVERY_MS, undefined, { signal, ref: false });
      await setImmediate();
    }
  } catch {
    // There is nothing to wait for any more.
  }
  return false;
}

// Whoever says that there are too many clients is there (PostgreSQL's 53300).
function isFull(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '53300';
}
