import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import { DomainError } from '../../core/errors.ts';
import { backoff } from '../../core/backoff.ts';
import type { Statements } from '../../database/sql.ts';
import { isBefore, readAfter, readHead, type Change, type LogPosition } from './change-log.ts';
import { Subscriber } from './subscriber.ts';

// One reader serves all subscribers of a process. It reads only while a subscriber has consumed the
// whole buffer and waits for more, so it is never ahead of the fastest subscriber. A subscriber is
// too slow when its next change is no longer in the buffer.

/** Minimum interval between reads of the log, in ms. */
const POLL_INTERVAL_MS = 50;
/** Maximum number of changes per read. */
const READ_SIZE = 500;
/** Maximum number of buffered changes: how far a subscriber may be behind the fastest one. */
const MAX_BUFFERED = 5_000;

/** Number of subscribers that are woken per turn of the event loop. */
const WAKES_PER_TURN = 10;

/** Runs a function outside of any request, because shared reads belong to the trace of none. */
const outsideRequests = AsyncLocalStorage.snapshot();

/** The reader of the change log, shared by all subscribers of a process. */
export class EventReader {
  private position: LogPosition | undefined;
  /** The history of the position. */
  private history: string | undefined;
  /** The last changes that were read, and the number of the first of them. */
  private buffer: Change[] = [];
  private bufferStart = 0;
  private readonly subscribers = new Set<Subscriber>();
  /** Subscribers to wake, because new changes are in the buffer. */
  private readonly toWake = new Set<Subscriber>();
  private subscribing = 0;
  private reading: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private nextAt = 0;
  /** Whether the log may have more changes than were read. */
  private hasMore = false;
  private waking: Promise<void> | undefined;
  private delays = backoff();

  constructor(private readonly statements: Statements) {}

  /** Subscribes to the changes committed from now on, until the request is cancelled. */
  async subscribe({ request }: Context): Promise<Subscriber> {
    this.subscribing++;
    try {
      // Reads again after a read in progress, so that changes committed before now are not new to
      // the subscriber.
      await this.reading?.catch(() => undefined);
      do {
        // Subscribers that are not woken yet would become too slow.
        await this.waking;
        await this.read();
      } while (this.hasMore);
      const position = this.position;
      if (!position) throw new TypeError('Event reader has no position after a read');
      const subscriber = new Subscriber(
        this,
        position,
        this.bufferStart + this.buffer.length,
        request,
      );
      this.subscribers.add(subscriber);
      // Needed for a client that disconnects before it requests the first change.
      onAbort(request?.signal, () => this.unsubscribe(subscriber));
      return subscriber;
    } finally {
      this.subscribing--;
      this.stopIfIdle();
    }
  }

  unsubscribe(subscriber: Subscriber): void {
    subscriber.detach();
    this.subscribers.delete(subscriber);
    this.stopIfIdle();
  }

  // Stops without subscribers. The next subscriber starts at the head of the log.
  private stopIfIdle(): void {
    if (this.subscribers.size > 0 || this.subscribing > 0) return;
    clearTimeout(this.timer);
    this.timer = this.position = undefined;
    this.buffer = [];
  }

  /** Returns the change of this number, counted from the first read; undefined if not read yet. */
  at(number: number): Change | undefined {
    return this.buffer[number - this.bufferStart];
  }

  /** Schedules a read, because a subscriber has consumed all changes. */
  requestMore(): void {
    if (this.timer || this.reading || this.waking) return;
    const readNext = () => {
      this.timer = undefined;
      // Subscribers stay while the database is down: the log retains the changes. Requests log its
      // failure.
      this.read().catch(() => undefined);
    };
    this.timer = outsideRequests(() =>
      setTimeout(readNext, Math.max(0, this.nextAt - performance.now())).unref(),
    );
  }

  private read(): Promise<void> {
    return (this.reading ??= this.tryToRead().finally(() => {
      this.reading = undefined;
      this.requestMoreIfWaiting();
    }));
  }

  private async tryToRead(): Promise<void> {
    try {
      await this.readBatch();
      this.delays = backoff();
    } catch (error) {
      this.nextAt = performance.now() + this.delays.next().value;
      throw error;
    }
  }

  private async readBatch(): Promise<void> {
    const { position: from, statements } = this;
    this.nextAt = performance.now() + POLL_INTERVAL_MS;
    if (!from) {
      const head = await readHead({ statements });
      this.position = head;
      this.history = head.history;
      return;
    }
    const { changes, position, history } = await readAfter({ statements }, from, READ_SIZE);
    // All subscribers have left meanwhile.
    if (this.position !== from) return;
    const isOther = history !== this.history;
    this.position = position;
    this.history = history;
    // The database was restored, or a replica was promoted that may lack the last changes.
    if (isOther || isBefore(position, from))
      for (const subscriber of this.subscribers) subscriber.end(cursorExpired());
    this.hasMore = changes.length === READ_SIZE;
    if (this.hasMore) this.nextAt = 0;
    this.append(changes);
  }

  private append(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    this.buffer.push(...changes);
    const dropped = this.buffer.splice(0, this.buffer.length - MAX_BUFFERED).length;
    this.bufferStart += dropped;
    for (const subscriber of this.subscribers) {
      if (subscriber.number < this.bufferStart) subscriber.end(slowConsumer());
      else if (subscriber.isWaiting) this.toWake.add(subscriber);
    }
    this.waking ??= this.wakeAll().finally(() => {
      this.waking = undefined;
      this.requestMoreIfWaiting();
    });
  }

  // Yields to the event loop, because handling a change takes time.
  private async wakeAll(): Promise<void> {
    let woken = 0;
    for (const subscriber of this.toWake) {
      this.toWake.delete(subscriber);
      subscriber.wake();
      if (++woken % WAKES_PER_TURN === 0) await setImmediate();
    }
  }

  private requestMoreIfWaiting(): void {
    for (const { isWaiting } of this.subscribers) if (isWaiting) return this.requestMore();
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
