import type { Logger } from 'pino';
import { LogThrottle } from '../core/log-throttle.ts';

const throttle = new LogThrottle<unknown>();

/** Logs why a database request failed, throttled because every request fails during an outage. */
export function logUnavailable(log: Logger, err: unknown): void {
  throttle.record(err, (last, times) => log.error({ err: last, times }, 'Database unavailable'));
}
