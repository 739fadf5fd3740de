import { AsyncResource } from 'node:async_hooks';
import type { RequestHandler } from 'express';
import { counter, gauge } from '../core/metrics.ts';
import type { Dependencies } from './dependencies.ts';
import { unavailableError } from './http-error.ts';

/** Maximum number of requests in progress. Further requests wait. */
const MAX_RUNNING = 128;
/**
 * Time in ms after which no further request starts in the same phase of the event loop. Each turn
 * of the loop accepts one connection, so that a health check that connects behind 300 others waits
 * 300 turns.
 */
const MAX_PHASE_MS = 1;
/** Maximum number of waiting requests that start in one turn. */
const MAX_STARTS = 16;
/** Created once: an error is expensive to create. */
const OVERLOADED = unavailableError();
/** Time without a rejection after which an overload has ended, in ms. */
const OVERLOAD_END_MS = 5_000;

/** Starts requests in the order of their arrival, and rejects them under overload. */
export class Admission {
  private running = 0;
  /** Time of the first start in this phase of the event loop, in ms. */
  private phaseStart: number | undefined;
  private isScheduled = false;
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
      if (this.waiting.length > 0) this.schedule();
    };
    res.locals.exclude = end;
    res.locals.onClose(end);
    if (this.waiting.length === 0 && this.mayStart()) return start();
    // Not a part of the trace of the request whose end allows its start. A resource with automatic
    // destruction would keep the request in memory.
    const own = new AsyncResource('WaitingRequest', { requireManualDestroy: true });
    waiting = () => own.runInAsyncScope(start);
    this.waiting.push(waiting);
    this.schedule();
  };

  // Starts waiting requests by immediates: Node does all that a request can do at once before it
  // runs the next immediate.
  private schedule(): void {
    if (this.isScheduled || this.running >= MAX_RUNNING) return;
    this.isScheduled = true;
    setImmediate(this.endPhase);
    for (let starts = 0; starts < MAX_STARTS; starts++)
      setImmediate(() => {
        if (this.waiting.length > 0 && this.mayStart()) this.waiting.shift()?.();
      });
    setImmediate(() => {
      this.endPhase();
      this.isScheduled = false;
      if (this.waiting.length > 0) this.schedule();
    });
  }

  private mayStart(): boolean {
    const now = performance.now();
    if (this.phaseStart === undefined) {
      this.phaseStart = now;
      setImmediate(this.endPhase);
    }
    return this.running < MAX_RUNNING && now - this.phaseStart < MAX_PHASE_MS;
  }

  private readonly endPhase = () => {
    this.phaseStart = undefined;
  };

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
