import { AsyncLocalStorage } from 'node:async_hooks';

/** Time in ms in which requests are started before the next turn of the event loop. In each, sockets are read, and one connection is accepted. */
const SLICE_MS = 5;
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
  ahead: number;
  state: 'new' | 'queued' | 'running' | 'uncounted' | 'ended';
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
  private sliceEnd = 0;

  constructor(
    private readonly now: () => number = () => performance.now(),
    private readonly onNextTurn: (work: () => void) => void = (work) => outsideRequests(setImmediate, work),
    private readonly onNextTick: (work: () => void) => void = (work) => process.nextTick(work),
  ) {}

  /** Returns whether a new request must be rejected. */
  isFull(): boolean {
    if (this.size >= this.max) return true;
    // A burst has drained by then, however slow the machine is.
    const isStanding = this.startsSinceEmpty > this.max;
    return isStanding && (this.size >= this.max / 2 || this.queue.length * this.msPerRequest > TARGET_MS);
  }

  /** Returns the ticket of a request that arrives now, to be added. */
  issue(start: () => void, isReceived: () => boolean): Ticket {
    return { arrivedAt: this.now(), start, isReceived, ahead: 0, state: 'new', startedAt: 0 };
  }

  /**
   * Adds a request and starts it when its turn comes: with nothing ahead of it, at once, for what is read of its body while it is
   * parsed need not be stored.
   */
  add(ticket: Ticket): void {
    ticket.ahead = this.queue.length;
    this.size++;
    if (ticket.ahead === 0) {
      this.startsSinceEmpty = 0;
      if (this.running < this.maxRunning && ticket.arrivedAt < this.sliceEnd) {
        this.onNextTick(() => this.uncountUnreceived(ticket));
        return this.start(ticket, ticket.arrivedAt);
      }
    }
    ticket.state = 'queued';
    this.queue.push(ticket);
    if (this.running < this.maxRunning && (ticket.ahead > 0 || this.scheduled === 0)) this.schedule(1);
  }

  /** Adds a request that is started by its caller, at once. */
  addStarted(ticket: Ticket): void {
    this.size++;
    ticket.state = 'uncounted';
  }

  /** Removes a request, once. With `isServed`, the time that it was in progress counts. */
  remove(ticket: Ticket, isServed: boolean): void {
    const { state } = ticket;
    if (state === 'new' || state === 'ended') return;
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
    for (let count = 0; count < starts; count++) {
      const isFirst = this.scheduled === 0;
      this.scheduled++;
      this.onNextTurn(() => this.takeTurn(isFirst));
    }
  }

  private takeTurn(isFirst: boolean): void {
    if (isFirst) this.sliceEnd = this.now() + SLICE_MS;
    try {
      this.startNext();
    } finally {
      if (--this.scheduled === 0) this.schedule(Math.min(this.queue.length, this.maxRunning - this.running));
    }
  }

  private startNext(): void {
    const now = this.now();
    if (this.running >= this.maxRunning || now >= this.sliceEnd) return;
    const ticket = this.queue.shift();
    if (!ticket) return;
    this.start(ticket, now);
    this.uncountUnreceived(ticket);
  }

  private start(ticket: Ticket, now: number): void {
    ticket.startedAt = now;
    this.startsSinceEmpty++;
    this.msPerRequest = (now - ticket.arrivedAt) / (ticket.ahead + 1);
    ticket.state = 'running';
    this.running++;
    ticket.start();
  }

  private uncountUnreceived(ticket: Ticket): void {
    if (ticket.state !== 'running' || ticket.isReceived()) return;
    ticket.state = 'uncounted';
    this.running--;
  }
}
