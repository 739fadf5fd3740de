import { Counter, Histogram, register } from 'prom-client';
import type { Api, Observer, RequestRecord } from './request-record.ts';

const DURATION = 'shopfront_request_duration_seconds';
const ERRORS = 'shopfront_errors_total';
/** In seconds, from a cached response to the request timeout. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const OTHER = 'other';

/** Histogram of one set of labels. */
type Measure = Histogram.Internal<string>;

/**
 * Returns an observer that measures requests by endpoint or operation and status, and counts
 * errors.
 */
export function requestMetrics(): Observer {
  for (const name of [DURATION, ERRORS]) register.removeSingleMetric(name);
  const durations = new Histogram({
    name: DURATION,
    help: 'Duration of requests until the response was sent, by endpoint or GraphQL operation and status class.',
    labelNames: ['api', 'operation', 'status'],
    buckets: BUCKETS,
  });
  const errors = new Counter({
    name: ERRORS,
    help: 'Rejected and failed requests by error code.',
    labelNames: ['api', 'code'],
  });
  // An alert would miss the first increase of a series that does not exist yet.
  for (const api of ['graphql', 'rest'] as const)
    errors.inc({ api, code: 'INTERNAL_SERVER_ERROR' }, 0);
  // Cached, because the library's lookup takes longer than the measurement.
  const measures: Record<Api, Map<string, Map<string, Measure>>> = {
    graphql: new Map(),
    rest: new Map(),
    other: new Map(),
  };
  const measureOf = (api: Api, operation: string, status: string): Measure => {
    const byStatus = measures[api].get(operation) ?? new Map<string, Measure>();
    const made = durations.labels({ api, operation, status });
    measures[api].set(operation, byStatus.set(status, made));
    return made;
  };
  return (record, ms) => {
    const { api } = record;
    for (const code of record.errors ?? []) errors.inc({ api, code });
    const operation = record.operation?.label ?? record.endpoint ?? OTHER;
    const status = statusOf(record);
    // A subscription lasts as long as its client is connected.
    if (record.operation?.type === 'subscription') return;
    const measure = measures[api].get(operation)?.get(status) ?? measureOf(api, operation, status);
    measure.observe(ms / 1000);
  };
}

function statusOf({ status = 0, end }: RequestRecord): string {
  return end === 'answered' ? `${Math.floor(status / 100)}xx` : end;
}
