import { createHash } from 'node:crypto';
import { RateLimiterRes, type RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { createRateLimiter } from '../../database/rate-limiter.ts';
import { execute, sql } from '../../database/sql.ts';

// Requests are counted by network only, whatever account they name, so that a rejection reveals
// nothing about the account. Mails are counted by recipient address when they are sent.

/** Length of the window of both limits, in seconds. */
const WINDOW_SECONDS = 3_600;
const TABLE = 'mail_count';

interface Limiters {
  byNetwork: RateLimiterPostgres;
  byRecipient: RateLimiterPostgres;
}

/**
 * Counts a mail request. Throws RATE_LIMITED after the maximum number of requests of a network
 * within an hour.
 */
export async function countRequest(ctx: Context): Promise<void> {
  const rejection = await consume(limitersOf(ctx).byNetwork, ctx.network ?? 'unknown');
  if (!rejection) return;
  ctx.log.warn(
    { event: 'mail.throttle', outcome: 'failure', user: ctx.caller?.username ?? null },
    'Too many mail requests',
  );
  const wait = Math.ceil(rejection.msBeforeNext / 1000);
  throw new DomainError(
    'RATE_LIMITED',
    'Too many mail requests; try again later',
    [],
    Math.max(1, wait),
  );
}

/**
 * Reserves one of the mails that a recipient may get within an hour. Each kind has its own limit,
 * because mails that anybody may request must not block the others. Returns the function that
 * releases the reservation if the mail is not sent, or undefined if none remains.
 */
export async function reserve(
  ctx: Context,
  kind: string,
  recipient: string,
): Promise<(() => Promise<void>) | undefined> {
  const { byRecipient } = limitersOf(ctx);
  const key = `${kind}:${createHash('sha256').update(recipient.toLowerCase()).digest('base64url')}`;
  if (await consume(byRecipient, key)) return undefined;
  return async () => void (await byRecipient.reward(key));
}

/** Deletes expired counts. Returns their number. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from mail_count where expire <= ${Date.now()}`,
  );
  return affected;
}

// Returns the rejection if the limit is reached.
async function consume(
  limiter: RateLimiterPostgres,
  key: string,
): Promise<RateLimiterRes | undefined> {
  try {
    await limiter.consume(key);
    return undefined;
  } catch (error) {
    if (error instanceof RateLimiterRes) return error;
    throw error;
  }
}

const limitersByConnection = new WeakMap<object, Limiters>();

// One pair for each database pool.
function limitersOf({ em, config }: Context): Limiters {
  const connection = em.getConnection();
  const existing = limitersByConnection.get(connection);
  if (existing) return existing;
  const limiter = (keyPrefix: string, points: number) =>
    createRateLimiter(em, { table: TABLE, keyPrefix, points, duration: WINDOW_SECONDS });
  const limiters = {
    byNetwork: limiter('network', config.mailRequestsPerAddressPerHour),
    byRecipient: limiter('recipient', config.mailsPerRecipientPerHour),
  };
  limitersByConnection.set(connection, limiters);
  return limiters;
}
