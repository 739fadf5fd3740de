import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate, setTimeout } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import { DomainError } from '../../core/errors.ts';
import { backoff } from '../../core/backoff.ts';
import type { Statements } from '../../database/sql.ts';
import { isBefore, readAfter, readHead, type Change, type LogPosition } from './change-log.ts';

// One reader serves all subscribers of a process. It reads only while a subscriber has consumed the
// whole buffer and waits for more, so it is never ahead of the fastest subscriber. A subscriber is
// too slow when its next change is no longer in the buffer.

/** Interval between reads of the log, in ms. */
const POLL_INTERVAL_MS = 50;
/** Maximum number of changes per read. */
const READ_SIZE = 500;
/** Maximum number of buffered changes: how far a subscriber may be behind the fastest one. */
const MAX_BUFFERED = 5_000;

/** Number of subscribers that are woken per turn of the event loop, because each takes time. */
const WAKES_PER_TURN = 10;

/** Runs a function outside of any request, because shared reads belong to the trace of none. */
const outsideRequests = AsyncLocalStorage.snapshot();

/** The reader of the change log, shared by all subscribers of a process. */
export class EventReader {
  /** Where the next read starts, and the history of that position. */
  private head: Awaited<ReturnType<typeof readHead>> | undefined;
  /** The last changes that were read, and the number of the first of them. */
  private buffer: Change[] = [];
  private bufferStart = 0;
  private readonly subscribers = new Set<Subscriber>();
  private isPolling = false;

  constructor(private readonly statements: Statements) {}

  /** Subscribes to the changes committed from now on, until the request is cancelled. */
  async subscribe({ request }: Context): Promise<Subscriber> {
    const subscriber = new Subscriber(this, this.bufferStart + this.buffer.length, request);
    this.subscribers.add(subscriber);
    const head = await readHead({ statements: this.statements }).catch((error: unknown) => {
      this.unsubscribe(subscriber);
      throw error;
    });
    // The buffer may get changes that were committed before now: those before the head.
    subscriber.start = head;
    // Needed for a client that disconnects before it requests the first change.
    onAbort(request?.signal, () => {
      this.unsubscribe(subscriber);
      subscriber.wake();
    });
    if (this.subscribers.has(subscriber)) this.head ??= head;
    if (!this.isPolling) void outsideRequests(() => this.poll());
    return subscriber;
  }

  // Without subscribers, forgets its position. The next subscriber starts at the head of the log.
  unsubscribe(subscriber: Subscriber): void {
    this.subscribers.delete(subscriber);
    if (this.subscribers.size > 0) return;
    this.head = undefined;
    this.bufferStart += this.buffer.length;
    this.buffer = [];
  }

  /** Returns the change of this number, counted from the first read; undefined if not read yet. */
  at(number: number): Change | undefined {
    return this.buffer[number - this.bufferStart];
  }

  private async poll(): Promise<void> {
    this.isPolling = true;
    let delays = backoff();
    for (let pause = POLL_INTERVAL_MS; this.subscribers.size > 0;) {
      await setTimeout(pause, undefined, { ref: false });
      pause = POLL_INTERVAL_MS;
      const isWanted = [...this.subscribers].some(({ isWaiting }) => isWaiting);
      if (!this.head || !isWanted) continue;
      try {
        if (await this.read(this.head)) pause = 0;
        delays = backoff();
      } catch {
        // Subscribers stay while the database is down: the log retains the changes. Requests log its
        // failure.
        pause = delays.next().value;
      }
    }
    this.isPolling = false;
  }

  // Returns whether the log may have more changes.
  private async read(from: NonNullable<typeof this.head>): Promise<boolean> {
    const { changes, position, history } = await readAfter(
      { statements: this.statements },
      from,
      READ_SIZE,
    );
    // All subscribers have left meanwhile.
    if (this.head !== from) return false;
    this.head = { tx: position.tx, pk: position.pk, history };
    // The database was restored, or a replica was promoted that may lack the last changes.
    if (history !== from.history || isBefore(position, from))
      for (const subscriber of this.subscribers) subscriber.end(cursorExpired());
    this.buffer.push(...changes);
    this.bufferStart += this.buffer.splice(0, this.buffer.length - MAX_BUFFERED).length;
    let woken = 0;
    for (const subscriber of this.subscribers) {
      if (subscriber.number < this.bufferStart) subscriber.end(slowConsumer());
      else if (changes.length > 0 && subscriber.isWaiting) {
        subscriber.wake();
        if (++woken % WAKES_PER_TURN === 0) await setImmediate();
      }
    }
    return changes.length === READ_SIZE;
  }
}

/** A subscriber of the change log. Each subscriber reads at its own pace. */
export class Subscriber {
  /** Position in the log at the time of the subscription. */
  start: LogPosition = { tx: '0', pk: '0' };
  private resume: (() => void) | undefined;
  private error: DomainError | undefined;

  constructor(
    private readonly source: EventReader,
    /** Number of the next change. */
    public number: number,
    private readonly request: Context['request'],
  ) {}

  /** Whether the subscriber has consumed all changes. */
  get isWaiting(): boolean {
    return this.resume !== undefined;
  }

  /**
   * Waits for the next change. Returns undefined when the request is aborted. Throws the error of
   * `end`.
   */
  async next(): Promise<Change | undefined> {
    while (this.error || !this.request?.signal.aborted) {
      if (this.error) throw this.error;
      const change = this.source.at(this.number);
      if (!change) {
        await new Promise<void>((resume) => (this.resume = resume));
        continue;
      }
      this.number++;
      if (!isBefore(change, this.start)) return change;
    }
    return undefined;
  }

  /** Resumes a waiting `next`. */
  wake(): void {
    this.resume?.();
    this.resume = undefined;
  }

  /**
   * Ends the subscription with an error, also for the request, which may be waiting for its client.
   */
  end(error: DomainError): void {
    this.error = error;
    this.wake();
    this.request?.end?.(error);
  }
}
function slowConsumer(): DomainError {
  return new DomainError('SLOW_CONSUMER', 'Subscription too slow; reconnect with the last cursor');
}

/** Returns the error for a cursor whose next changes the log no longer has. */
export function cursorExpired(): DomainError {
  return new DomainError(
    'CURSOR_EXPIRED',
    'Cursor expired; reload your data and subscribe without a cursor',
  );
}
