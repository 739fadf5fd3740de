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
  const logRequest = log.isLevelEnabled('info') ? requestLog(destination) : undefined;
  const measureRequest = metricsPort === undefined ? undefined : requestMetrics();
  return (record, ms) => {
    logRequest?.(record, ms);
    measureRequest?.(record, ms);
  };
}
