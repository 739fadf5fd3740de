import { createHash } from 'node:crypto';
import { RateLimiterRes, type RateLimiterPostgres } from 'rate-limiter-flexible';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { openLimiter } from '../../database/rate-limiter.ts';
import { execute, sql } from '../../database/sql.ts';

// Requests are counted by network alone, whatever they name, so that a refusal tells nothing of it. How many mails somebody gets is counted
// when they leave, by the address that they go to.

/** Seconds. */
const WINDOW = 3_600;
const TABLE = 'mail_count';

interface Limiters {
  byNetwork: RateLimiterPostgres;
  byRecipient: RateLimiterPostgres;
}

/** Counts a request for a mail. Throws RATE_LIMITED after MAIL_REQUESTS_PER_ADDRESS of them from one network within an hour. */
export async function countRequest(ctx: Context): Promise<void> {
  const refused = await refusalOf(limitersOf(ctx).byNetwork, ctx.network ?? 'unknown');
  if (!refused) return;
  ctx.log.warn({ event: 'mail.throttle', outcome: 'failure', user: ctx.caller?.username ?? null }, 'too many mails were asked for');
  const wait = Math.ceil(refused.msBeforeNext / 1000);
  throw new DomainError('RATE_LIMITED', 'Too many mails were asked for; try again later', [], Math.max(1, wait));
}

/**
 * Takes one of the MAILS_PER_RECIPIENT of this kind that a recipient may get within an hour: mails of another kind, which anybody may
 * request, do not keep these away. Returns a function that gives it back if the mail is not sent, or undefined if none is left.
 */
export async function takeTurn(ctx: Context, kind: string, recipient: string): Promise<(() => Promise<void>) | undefined> {
  const { byRecipient } = limitersOf(ctx);
  const key = `${kind}:${createHash('sha256').update(recipient.toLowerCase()).digest('base64url')}`;
  if (await refusalOf(byRecipient, key)) return undefined;
  return async () => void (await byRecipient.reward(key));
}

/** Deletes what no longer counts. Returns how much. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(ctx.em, sql`delete from mail_count where expire <= ${Date.now()}`);
  return affected;
}

async function refusalOf(limiter: RateLimiterPostgres, key: string): Promise<RateLimiterRes | undefined> {
  try {
    await limiter.consume(key);
    return undefined;
  } catch (refused) {
    if (refused instanceof RateLimiterRes) return refused;
    throw refused;
  }
}

const known = new WeakMap<object, Limiters>();

// One pair for each pool, whoever asks.
function limitersOf({ em, config }: Context): Limiters {
  const connection = em.getConnection();
  const found = known.get(connection);
  if (found) return found;
  const limiter = (keyPrefix: string, points: number) => openLimiter(em, { table: TABLE, keyPrefix, points, duration: WINDOW });
  const made = {
    byNetwork: limiter('network', config.mailRequestsPerAddress),
    byRecipient: limiter('recipient', config.mailsPerRecipient),
  };
  known.set(connection, made);
  return made;
}
