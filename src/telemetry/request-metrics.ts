import { Counter, register } from 'prom-client';
import { durations } from '../core/metrics.ts';
import type { Observer, RequestRecord } from './request-record.ts';

const ERRORS = 'shopfront_errors_total';
/** In seconds, from a cached response to the request timeout. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const OTHER = 'other';

/**
 * Returns an observer that measures requests by endpoint or operation and status, and counts
 * errors.
 */
export function requestMetrics(): Observer {
  const measure = durations(
    'shopfront_request_duration_seconds',
    'Duration of requests until the response was sent, by endpoint or GraphQL operation and status class.',
    ['api', 'operation', 'status'],
    BUCKETS,
  );
  register.removeSingleMetric(ERRORS);
  const errors = new Counter({
    name: ERRORS,
    help: 'Rejected and failed requests by error code.',
    labelNames: ['api', 'code'],
  });
  // An alert would miss the first increase of a series that does not exist yet.
  for (const api of ['graphql', 'rest']) errors.inc({ api, code: 'INTERNAL_SERVER_ERROR' }, 0);
  return (record, ms) => {
    const { api, operation, endpoint = OTHER } = record;
    for (const code of record.errors ?? []) errors.inc({ api, code });
    // A subscription lasts as long as its client is connected.
    if (operation?.type !== 'subscription')
      measure(ms, api, operation?.label ?? endpoint, statusOf(record));
  };
}

function statusOf({ status = 0, end }: RequestRecord): string {
  return end === 'answered' ? `${Math.floor(status / 100)}xx` : end;
}
