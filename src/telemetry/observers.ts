import type { DestinationStream, Logger } from 'pino';
import type { Config } from '../core/config.ts';
import { requestLog } from './request-log.ts';
import { requestMetrics } from './request-metrics.ts';
import type { Observer } from './request-record.ts';

/** What is to be told of each request: the log, where LOG_REQUESTS says so, whose lines go to `destination`, and the metrics where there are any. */
export function openObserver({ logRequests, metricsPort }: Config, log: Logger, destination: DestinationStream): Observer {
  const observers = [...(logRequests ? [requestLog(log, destination)] : []), ...(metricsPort === undefined ? [] : [requestMetrics()])];
  const [only, ...others] = observers;
  if (only && others.length === 0) return only;
  return (seen, ms) => {
    for (const observe of observers) observe(seen, ms);
  };
}
