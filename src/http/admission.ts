import { AsyncResource } from 'node:async_hooks';
import type { RequestHandler } from 'express';
import type { Config } from '../core/config.ts';
import { counter, gauge } from '../core/metrics.ts';
import { unavailableError } from './http-error.ts';

/** Maximum number of requests in progress. Further requests wait. */
const MAX_RUNNING = 128;

/** Starts requests in the order of their arrival, and rejects them under overload. */
export class Admission {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly rejections = counter(
    'shopfront_overload_refusals_total',
    'Requests rejected with 503 because of overload.',
  );

  constructor(private readonly config: Pick<Config, 'maxRequestsInFlight'>) {
    gauge(
      'shopfront_requests_in_flight',
      'Requests in progress or waiting, except those waiting for a password hash or a slow reader.',
      () => this.running + this.waiting.length,
    );
  }

  /** Returns whether MAX_REQUESTS_IN_FLIGHT are in progress or wait. */
  isFull(): boolean {
    return this.running + this.waiting.length >= this.config.maxRequestsInFlight;
  }

  /** Lets a request wait its turn, or throws UNAVAILABLE. Preflights pass. */
  readonly middleware: RequestHandler = (req, res, next) => {
    if (req.method === 'OPTIONS') return next();
    if (this.isFull()) {
      this.rejections.value++;
      throw unavailableError();
    }
    let isRunning = false;
    let waiting: (() => void) | undefined;
    const start = () => {
      isRunning = true;
      this.running++;
      next();
    };
    const end = () => {
      const at = waiting ? this.waiting.indexOf(waiting) : -1;
      if (at >= 0) this.waiting.splice(at, 1);
      if (isRunning) this.running--;
      isRunning = false;
      if (this.running < MAX_RUNNING) this.waiting.shift()?.();
    };
    res.locals.exclude = end;
    res.locals.onClose(end);
    if (this.running < MAX_RUNNING) return start();
    // Not a part of the trace of the request whose end allows its start.
    waiting = AsyncResource.bind(start);
    this.waiting.push(waiting);
  };
}
