import type { Context } from '../../request/context.ts';

/** Facts of a log line. Without `user`, the user is unknown. */
interface Facts extends Record<string, unknown> {
  event: string;
  user?: string | null;
}

/** Logs that an action on an account succeeded. */
export function logSuccess({ log }: Context, facts: Facts): void {
  log.info({ outcome: 'success', user: null, ...facts }, facts.event);
}

/** Logs that an action on an account was rejected. */
export function logFailure({ log }: Context, facts: Facts): void {
  log.info({ outcome: 'failure', user: null, ...facts }, facts.event);
}
