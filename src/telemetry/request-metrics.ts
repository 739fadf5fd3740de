import { Counter, Histogram, register } from 'prom-client';
import type { Door, Observer, Seen } from './request-record.ts';

const DURATION = 'shopfront_request_duration_seconds';
const ERRORS = 'shopfront_errors_total';
/** In seconds, from a shared answer to the deadline of a request. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const OTHERS = 'other';

/** What measures requests of one set of labels. */
type Measure = Histogram.Internal<string>;

/** Measures each request by its row or operation and by what came of it, and counts refusals by their codes. */
export function requestMetrics(): Observer {
  for (const name of [DURATION, ERRORS]) register.removeSingleMetric(name);
  const durations = new Histogram({
    name: DURATION,
    help: 'How long requests took, until the answer was sent, by row or GraphQL operation and by the class of the status.',
    labelNames: ['door', 'operation', 'status'],
    buckets: BUCKETS,
  });
  const errors = new Counter({
    name: ERRORS,
    help: 'Requests that were refused or failed, by the code of the error.',
    labelNames: ['door', 'code'],
  });
  // What is not there yet has not increased when it comes: an alarm would miss the first.
  for (const door of ['graphql', 'rest'] as const) errors.inc({ door, code: 'INTERNAL_SERVER_ERROR' }, 0);
  // What the library makes for a set of labels is kept: to find it takes longer than to measure.
  const kept: Record<Door, Map<string, Map<string, Measure>>> = { graphql: new Map(), rest: new Map(), other: new Map() };
  const measureOf = (door: Door, operation: string, status: string): Measure => {
    const byStatus = kept[door].get(operation) ?? new Map<string, Measure>();
    const made = durations.labels({ door, operation, status });
    kept[door].set(operation, byStatus.set(status, made));
    return made;
  };
  return (seen, ms) => {
    const { door } = seen;
    for (const code of seen.errors ?? []) errors.inc({ door, code });
    const operation = seen.operation?.label ?? seen.row ?? OTHERS;
    const status = statusOf(seen);
    // It takes as long as somebody listens.
    if (seen.operation?.type === 'subscription') return;
    const measure = kept[door].get(operation)?.get(status) ?? measureOf(door, operation, status);
    measure.observe(ms / 1000);
  };
}

function statusOf({ status = 0, end }: Seen): string {
  return end === 'answered' ? `${Math.floor(status / 100)}xx` : end;
}
