import type { DestinationStream, Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { requestLog } from './request-log.ts';
import { requestMetrics } from './request-metrics.ts';
import type { Observer } from './request-record.ts';

/**
 * Returns the observer of completed requests: writes the request log to `destination` with
 * LOG_REQUESTS, and updates the metrics if they are enabled.
 */
export function openObserver(
  { logRequests, metricsPort }: Config,
  log: Logger,
  destination: DestinationStream,
): Observer {
  const observers = [
    ...(logRequests ? [requestLog(log, destination)] : []),
    ...(metricsPort === undefined ? [] : [requestMetrics()]),
  ];
  const [first, ...rest] = observers;
  if (first && rest.length === 0) return first;
  return (record, ms) => {
    for (const observe of observers) observe(record, ms);
  };
}
