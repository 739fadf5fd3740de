import type { DestinationStream, Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { requestLog } from './request-log.ts';
import { requestMetrics } from './request-metrics.ts';
import type { Observer } from './request-record.ts';

/**
 * Returns the observer of completed requests: writes the request log to `destination` if the level
 * `info` is logged, and updates the metrics if they are enabled.
 */
export function openObserver(
  { metricsPort }: Config,
  log: Logger,
  destination: DestinationStream,
): Observer {
  const observers = [
    ...(log.isLevelEnabled('info') ? [requestLog(destination)] : []),
    ...(metricsPort === undefined ? [] : [requestMetrics()]),
  ];
  const [first, ...rest] = observers;
  if (first && rest.length === 0) return first;
  return (record, ms) => {
    for (const observe of observers) observe(record, ms);
  };
}
