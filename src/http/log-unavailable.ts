import type { Logger } from 'pino';
import { Bursts } from '../core/log-throttle.ts';

const bursts = new Bursts<unknown>();

/** Tells the log why the database did not do what a request asked for: while it is away, each request meets the same. */
export function tellUnavailable(log: Logger, err: unknown): void {
  bursts.note(err, (last, times) => log.error({ err: last, times }, 'the database is not available'));
}
