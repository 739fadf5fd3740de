import { AsyncLocalStorage } from 'node:async_hooks';

/** Time in ms in each turn of the event loop in which requests are started. Between, connections are read and health checks answered. */
const SLICE_MS = 50;
/** Bounds of the number of requests in progress. Within them, it follows how long they take. */
const MIN_RUNNING = 32;
const MAX_RUNNING = 128;
/** Longest time in ms that a request should wait in a standing queue, and be in progress. */
const TARGET_MS = 500;

/** Runs a function outside of any request: what starts a request must not be traced as a part of the one whose end made room for it. */
const outsideRequests = AsyncLocalStorage.snapshot();

/** A request, from its arrival to its response. */
export interface Ticket {
  readonly arrivedAt: number;
  readonly start: () => void;
  /** Returns whether the request has been received in full. Otherwise it waits for its client and takes no place. */
  readonly isReceived: () => boolean;
  /** Number of requests that were queued before it. */
  readonly ahead: number;
  state: 'queued' | 'running' | 'uncounted' | 'ended';
  startedAt: number;
}

/**
 * Starts requests in the order of their arrival, as many at a time as the process and its database can work on. A burst of up to `max`
 * requests is queued. A queue that is still there after `max` requests were started is a standing queue (CoDel, RFC 8289): then new
 * requests are rejected when there are half of `max`, or when they would be queued for longer than the target.
 */
export class RequestQueue {
  /** Number of requests, queued and in progress. */
  size = 0;
  /** Maximum of the same. */
  max = Infinity;
  private readonly queue: Ticket[] = [];
  private startsSinceEmpty = 0;
  /** How long the last started request had waited in ms, for each request in front of it and itself. */
  private msPerRequest = 0;
  private running = 0;
  private maxRunning = MAX_RUNNING;
  private scheduled = 0;
  private sliceStart: number | undefined;

  constructor(
    private readonly now: () => number = () => performance.now(),
    private readonly onNextTurn: (work: () => void) => void = (work) => outsideRequests(setImmediate, work),
  ) {}

  /** Returns whether a new request must be rejected. */
  isFull(): boolean {
    if (this.size >= this.max) return true;
    // A burst has drained by then, however slow the machine is.
    const isStanding = this.startsSinceEmpty > this.max;
    return isStanding && (this.size >= this.max / 2 || this.queue.length * this.msPerRequest > TARGET_MS);
  }

  /** Adds a request and starts it when its turn comes. */
  add(start: () => void, isReceived: () => boolean): Ticket {
    const arrivedAt = this.now();
    const ticket: Ticket = { arrivedAt, start, isReceived, ahead: this.queue.length, state: 'queued', startedAt: 0 };
    if (this.queue.length === 0) this.startsSinceEmpty = 0;
    this.queue.push(ticket);
    this.size++;
    if (this.running < this.maxRunning) this.schedule(1);
    return ticket;
  }

  /** Adds a request that is started by its caller, at once. */
  addStarted(): Ticket {
    this.size++;
    return { arrivedAt: this.now(), start: () => undefined, isReceived: () => true, ahead: 0, state: 'uncounted', startedAt: 0 };
  }

  /** Removes a request, once. With `isServed`, the time that it was in progress counts. */
  remove(ticket: Ticket, isServed: boolean): void {
    const { state } = ticket;
    if (state === 'ended') return;
    ticket.state = 'ended';
    this.size--;
    if (state === 'queued') this.queue.splice(this.queue.indexOf(ticket), 1);
    if (state !== 'running') return;
    this.running--;
    if (isServed) {
      const step = this.now() - ticket.startedAt > TARGET_MS ? -1 : 1;
      this.maxRunning = Math.min(MAX_RUNNING, Math.max(MIN_RUNNING, this.maxRunning + step));
    }
    if (this.scheduled === 0 && this.queue.length > 0) this.schedule(1);
  }

  // Node finishes what one callback has begun before it calls the next one: the clock sees the work of those started before.
  private schedule(starts: number): void {
    for (let count = 0; count < starts; count++) this.onNextTurn(() => this.startNext());
    this.scheduled += starts;
  }

  private startNext(): void {
    const now = this.now();
    const isLast = --this.scheduled === 0;
    this.sliceStart ??= now;
    const ticket = now - this.sliceStart < SLICE_MS && this.running < this.maxRunning && this.queue.shift();
    if (ticket) this.start(ticket);
    if (!isLast) return;
    this.sliceStart = undefined;
    this.schedule(Math.min(this.queue.length, this.maxRunning - this.running));
  }

  private start(ticket: Ticket): void {
    ticket.startedAt = this.now();
    this.startsSinceEmpty++;
    this.msPerRequest = (ticket.startedAt - ticket.arrivedAt) / (ticket.ahead + 1);
    ticket.state = ticket.isReceived() ? 'running' : 'uncounted';
    if (ticket.state === 'running') this.running++;
    ticket.start();
  }
}
