import { AsyncResource } from 'node:async_hooks';
import type { RequestHandler } from 'express';
import { counter, gauge } from '../core/metrics.ts';
import type { Dependencies } from './dependencies.ts';
import { unavailableError } from './http-error.ts';

/** Maximum number of requests in progress. Further requests wait. */
const MAX_RUNNING = 128;
/**
 * Time in ms after which no further request starts in the same turn of the event loop. Each turn
 * accepts one connection, so that a health check that connects behind 300 others waits 300 turns.
 */
const MAX_TURN_MS = 2;
/** Maximum number of waiting requests that start in one turn: their work follows all starts. */
const MAX_STARTS = 2;
/** Created once: an error is expensive to create. */
const OVERLOADED = unavailableError();
/** Time without a rejection after which an overload has ended, in ms. */
const OVERLOAD_END_MS = 5_000;

/** Starts requests in the order of their arrival, and rejects them under overload. */
export class Admission {
  private running = 0;
  /** Start of the turn of the event loop, if a request has started in it, in ms. */
  private turnStart: number | undefined;
  private readonly waiting: (() => void)[] = [];
  private overload: NodeJS.Timeout | undefined;
  private readonly rejections = counter(
    'shopfront_overload_refusals_total',
    'Requests rejected with 503 because of overload.',
  );

  constructor(private readonly dependencies: Pick<Dependencies, 'config' | 'log'>) {
    gauge(
      'shopfront_requests_in_flight',
      'Requests in progress or waiting, except those waiting for a password hash or a slow reader.',
      () => this.running + this.waiting.length,
    );
  }

  /** Returns whether MAX_REQUESTS_IN_FLIGHT are in progress or wait. */
  isFull(): boolean {
    const { maxRequestsInFlight } = this.dependencies.config;
    return this.running + this.waiting.length >= maxRequestsInFlight;
  }

  /** Lets a request wait its turn, or throws UNAVAILABLE. Preflights and health checks pass. */
  readonly middleware: RequestHandler = (req, res, next) => {
    const { basePath } = this.dependencies.config;
    if (req.method === 'OPTIONS') return next();
    if (req.url === `${basePath}/livez` || req.url === `${basePath}/readyz`) return next();
    if (this.isFull()) {
      this.recordRejection();
      throw OVERLOADED;
    }
    let isRunning = false;
    const start = () => {
      // Its time is up.
      if (res.headersSent) return;
      isRunning = true;
      this.running++;
      next();
    };
    let waiting: (() => void) | undefined;
    const end = () => {
      const at = waiting ? this.waiting.indexOf(waiting) : -1;
      if (at >= 0) this.waiting.splice(at, 1);
      if (isRunning) this.running--;
      isRunning = false;
      this.startWaiting();
    };
    res.locals.exclude = end;
    res.locals.onClose(end);
    if (this.waiting.length === 0 && this.mayStart()) return start();
    // Not a part of the trace of the request whose end allows its start. A resource with automatic
    // destruction would keep the request in memory.
    const own = new AsyncResource('WaitingRequest', { requireManualDestroy: true });
    waiting = () => own.runInAsyncScope(start);
    this.waiting.push(waiting);
  };

  private startWaiting(): void {
    for (let starts = 0; starts < MAX_STARTS && this.waiting.length > 0; starts++)
      if (this.mayStart()) this.waiting.shift()?.();
  }

  private mayStart(): boolean {
    if (this.running >= MAX_RUNNING) return false;
    const now = performance.now();
    if (this.turnStart !== undefined) return now - this.turnStart < MAX_TURN_MS;
    this.turnStart = now;
    setImmediate(() => {
      this.turnStart = undefined;
      this.startWaiting();
    });
    return true;
  }

  private recordRejection(): void {
    const before = this.rejections.value++;
    if (this.overload) {
      this.overload.refresh();
      return;
    }
    const { log } = this.dependencies;
    log.warn({ event: 'overload.begin' }, 'Overload began; some requests are rejected with 503');
    this.overload = setTimeout(() => {
      this.overload = undefined;
      const refused = this.rejections.value - before;
      log.warn({ event: 'overload.end', refused }, 'Overload ended; no requests are rejected');
    }, OVERLOAD_END_MS).unref();
  }
}
