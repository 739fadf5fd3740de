import { AsyncResource } from 'node:async_hooks';
import type { RequestHandler } from 'express';
import { counter, gauge } from '../core/metrics.ts';
import type { Dependencies } from './dependencies.ts';
import { unavailableError } from './http-error.ts';

/** Maximum number of requests in progress. Further requests wait. */
const MAX_RUNNING = 128;
/**
 * Maximum number of requests that start in one turn of the event loop, which accepts one connection
 * each turn. A health check that connects behind 300 others waits 300 turns.
 */
const MAX_STARTS = 3;
/** Created once: an error is expensive to create. */
const OVERLOADED = unavailableError();
/** Time without a rejection after which an overload has ended, in ms. */
const OVERLOAD_END_MS = 5_000;

/** Starts requests in the order of their arrival, and rejects them under overload. */
export class Admission {
  private running = 0;
  private startsInTurn = 0;
  private readonly waiting = new Set<() => void>();
  private overload: NodeJS.Timeout | undefined;
  private readonly rejections = counter(
    'shopfront_overload_refusals_total',
    'Requests rejected with 503 because of overload.',
  );

  constructor(private readonly dependencies: Pick<Dependencies, 'config' | 'log'>) {
    gauge(
      'shopfront_requests_in_flight',
      'Requests in progress or waiting, except those waiting for a password hash or a slow reader.',
      () => this.running + this.waiting.size,
    );
  }

  /** Returns whether MAX_REQUESTS_IN_FLIGHT are in progress or wait. */
  isFull(): boolean {
    const { maxRequestsInFlight } = this.dependencies.config;
    return this.running + this.waiting.size >= maxRequestsInFlight;
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
    // Not a part of the trace of the request whose end allows its start.
    const start = AsyncResource.bind(() => {
      // Its time is up.
      if (res.headersSent) return;
      isRunning = true;
      this.running++;
      next();
    });
    const end = () => {
      this.waiting.delete(start);
      if (isRunning) this.running--;
      isRunning = false;
      this.startWaiting();
    };
    res.locals.exclude = end;
    res.locals.onClose(end);
    this.waiting.add(start);
    this.startWaiting();
  };

  private startWaiting(): void {
    for (const start of this.waiting) {
      if (this.running >= MAX_RUNNING || this.startsInTurn >= MAX_STARTS) return;
      if (this.startsInTurn++ === 0)
        setImmediate(() => {
          this.startsInTurn = 0;
          this.startWaiting();
        });
      this.waiting.delete(start);
      start();
    }
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
