import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Time for starting requests before the next turn of the event loop, in ms. Each turn reads sockets
 * and accepts one connection.
 */
const SLICE_MS = 5;
/** Bounds of the maximum number of requests in progress, which adapts to their duration. */
const MIN_RUNNING = 32;
const MAX_RUNNING = 128;
/** Target for the time of a request in a standing queue, and for its time in progress, in ms. */
const TARGET_MS = 500;

/**
 * Runs a function outside of any request. A request must not be traced as a part of the request
 * whose end allowed its start.
 */
const outsideRequests = AsyncLocalStorage.snapshot();

/**
 * - `outside`: not added yet, or removed.
 * - `queued`: added and not started.
 * - `running`: started, and counted in the number of requests in progress.
 * - `unreceived`: started, and waits for its body.
 * - `unlimited`: started by its caller, and counted only in the size.
 */
type State = 'outside' | 'queued' | 'running' | 'unreceived' | 'unlimited';

/** A request, from its arrival to its response. */
export abstract class Ticket {
  /** Number of requests that were queued before it. */
  ahead = 0;
  state: State = 'outside';
  startedAt = 0;

  constructor(
    readonly arrivedAt: number,
    /** Whether a body follows its headers, which may not have been received yet. */
    readonly hasBody: boolean,
  ) {}

  abstract start(): void;
  /** Rejects the request instead of starting it. */
  abstract reject(): void;
  /**
   * Returns whether the request was received completely. If not, it is not counted as in progress.
   */
  abstract isReceived(): boolean;
  /** Calls the listener when the rest of the request has been received and read. */
  abstract onceReceived(listener: () => void): void;
}

/** A request without a body, such as a subscription on a WebSocket. */
class BodilessTicket extends Ticket {
  constructor(
    arrivedAt: number,
    readonly start: () => void,
    readonly isReceived: () => boolean,
  ) {
    super(arrivedAt, false);
  }

  reject(): void {}

  onceReceived(): void {}
}

/**
 * Starts requests in the order of their arrival, as many at a time as the process and its database
 * can handle. Queues a burst of up to `max` requests. A queue that is not empty after `max`
 * requests were started is a standing queue (CoDel, RFC 8289): new requests are then rejected when
 * there are half of `max`, or when they would be queued for longer than the target. Requests that
 * wait for their bodies do not count against other requests. When there are `max` of them, only
 * requests whose body has not been received are rejected.
 */
export class RequestQueue {
  /** Number of all requests that were added and not removed. */
  size = 0;
  /**
   * Maximum number of requests, queued and in progress, and maximum number of requests that wait
   * for their bodies.
   */
  max = Infinity;
  private readonly queue: Ticket[] = [];
  /** Requests that were started before their bodies could be read. */
  private unchecked: Ticket[] = [];
  private startsSinceEmpty = 0;
  /** Queue time of the last started request, per request ahead of it and itself, in ms. */
  private msPerRequest = 0;
  private running = 0;
  private unreceived = 0;
  private maxRunning = MAX_RUNNING;
  private scheduled = 0;
  private sliceEnd = 0;

  constructor(
    private readonly now: () => number = () => performance.now(),
    private readonly onNextTurn: (work: () => void) => void = (work) =>
      outsideRequests(setImmediate, work),
  ) {}

  /** Returns whether a new request must be rejected. */
  isFull(): boolean {
    const queued = this.queue.length;
    const counted = queued + this.running;
    if (counted >= this.max) return true;
    // A burst has drained by then, even on a slow machine.
    const isStanding = queued > 0 && this.startsSinceEmpty > this.max;
    return isStanding && (counted >= this.max / 2 || queued * this.msPerRequest > TARGET_MS);
  }

  /** Returns a ticket to add for a request without a body that arrives now. */
  issue(start: () => void, isReceived: () => boolean): Ticket {
    return new BodilessTicket(this.now(), start, isReceived);
  }

  /**
   * Adds a request, to start in order. Starts it at once if the queue is empty, because a body that
   * is read while it is parsed need not be stored.
   */
  add(ticket: Ticket): void {
    ticket.ahead = this.queue.length;
    this.size++;
    if (ticket.ahead === 0) {
      this.startsSinceEmpty = 0;
      const mayStart = this.running < this.maxRunning && ticket.arrivedAt < this.sliceEnd;
      if (mayStart && !ticket.hasBody) return this.start(ticket, ticket.arrivedAt);
      if (mayStart && this.unreceived < this.max) {
        // By the next turn, the received part of its body has been read.
        if (this.unchecked.push(ticket) === 1) this.onNextTurn(this.uncountAllUnreceived);
        return this.start(ticket, ticket.arrivedAt);
      }
    }
    ticket.state = 'queued';
    this.queue.push(ticket);
    if (this.running < this.maxRunning && (ticket.ahead > 0 || this.scheduled === 0))
      this.schedule(1);
  }

  /** Adds a request that its caller starts at once, without any limit. */
  addStarted(ticket: Ticket): void {
    this.size++;
    ticket.state = 'unlimited';
  }

  /** Removes a request. With `isServed`, its time in progress adapts the maximum. */
  remove(ticket: Ticket, isServed: boolean): void {
    const { state } = ticket;
    if (state === 'outside') return;
    ticket.state = 'outside';
    this.size--;
    if (state === 'queued') this.queue.splice(this.queue.indexOf(ticket), 1);
    if (state === 'unreceived') this.unreceived--;
    if (state !== 'running') return;
    this.running--;
    if (isServed) {
      const step = this.now() - ticket.startedAt > TARGET_MS ? -1 : 1;
      this.maxRunning = Math.min(MAX_RUNNING, Math.max(MIN_RUNNING, this.maxRunning + step));
    }
    this.scheduleNext();
  }

  private scheduleNext(): void {
    if (this.scheduled === 0 && this.queue.length > 0) this.schedule(1);
  }

  // One callback per request: Node finishes the work that a callback began before it calls the
  // next, so that the clock includes the work of the requests started before.
  private schedule(starts: number): void {
    for (let count = 0; count < starts; count++) {
      const isFirst = this.scheduled === 0;
      this.scheduled++;
      this.onNextTurn(isFirst ? this.takeFirstTurn : this.takeTurn);
    }
  }

  private readonly takeFirstTurn = (): void => {
    const now = this.now();
    this.sliceEnd = now + SLICE_MS;
    this.startNext(now);
  };

  private readonly takeTurn = (): void => this.startNext(this.now());

  private startNext(now: number): void {
    try {
      if (this.running >= this.maxRunning || now >= this.sliceEnd) return;
      const ticket = this.queue.shift();
      if (ticket) this.startOrReject(ticket, now);
    } finally {
      if (--this.scheduled === 0)
        this.schedule(Math.min(this.queue.length, this.maxRunning - this.running));
    }
  }

  private startOrReject(ticket: Ticket, now: number): void {
    if (this.unreceived >= this.max && !ticket.isReceived()) {
      ticket.state = 'outside';
      this.size--;
      return ticket.reject();
    }
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

  private readonly uncountAllUnreceived = (): void => {
    const tickets = this.unchecked;
    this.unchecked = [];
    for (const ticket of tickets) this.uncountUnreceived(ticket);
    this.scheduleNext();
  };

  private uncountUnreceived(ticket: Ticket): void {
    if (ticket.state !== 'running' || ticket.isReceived()) return;
    ticket.state = 'unreceived';
    this.running--;
    this.unreceived++;
    ticket.onceReceived(() => this.countReceived(ticket));
  }

  // Even above the maximum: its client has waited already, and started work cannot be queued.
  private countReceived(ticket: Ticket): void {
    if (ticket.state !== 'unreceived') return;
    ticket.state = 'running';
    ticket.startedAt = this.now();
    this.unreceived--;
    this.running++;
  }
}
