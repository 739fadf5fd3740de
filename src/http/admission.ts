import { AsyncResource } from 'node:async_hooks';
import type { RequestHandler } from 'express';
import { counter, gauge } from '../core/metrics.ts';
import { unavailableError } from './http-error.ts';

/** Maximum number of requests in progress. Further requests wait. */
const MAX_RUNNING = 128;
/** Maximum number of starts in a turn of the event loop, in which Node accepts one connection. */
const MAX_STARTS = 4;

/** Starts requests in the order of their arrival, and rejects them under overload. */
export class Admission {
  private running = 0;
  private starts = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly rejections = counter(
    'shopfront_overload_refusals_total',
    'Requests rejected with 503 because of overload.',
  );

  constructor(
    private readonly maxInFlight: number,
    private readonly isTraced: boolean,
  ) {
    gauge(
      'shopfront_requests_in_flight',
      'Requests in progress or waiting, except those waiting for a password hash, a subscription or a slow reader.',
      () => this.running + this.waiting.length,
    );
  }

  /** Returns whether as many requests are in progress or wait as may. */
  isFull(): boolean {
    return this.running + this.waiting.length >= this.maxInFlight;
  }

  /** Lets a request wait its turn, or throws UNAVAILABLE. Preflights pass. */
  readonly middleware: RequestHandler = (req, res, next) => {
    if (req.method === 'OPTIONS') return next();
    if (this.isFull()) {
      this.rejections.value++;
      throw unavailableError();
    }
    // Not a part of the trace of the request whose end allows its start.
    const start = this.isTraced ? AsyncResource.bind(() => next()) : () => next();
    res.locals.exclude = () => {
      res.locals.exclude = () => undefined;
      const at = this.waiting.indexOf(start);
      if (at < 0) this.running--;
      else this.waiting.splice(at, 1);
      this.startWaiting();
    };
    this.waiting.push(start);
    this.startWaiting();
  };

  private readonly startWaiting = (isNewTurn = false) => {
    if (isNewTurn) this.starts = 0;
    while (this.running < MAX_RUNNING && this.starts < MAX_STARTS) {
      const start = this.waiting.shift();
      if (!start) return;
      if (this.starts++ === 0) setImmediate(this.startWaiting, true);
      this.running++;
      start();
    }
  };
}
