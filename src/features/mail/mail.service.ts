import { createHash } from 'node:crypto';
import { Entity } from '@mikro-orm/decorators/legacy';
import { RateLimiterRes } from 'rate-limiter-flexible';
import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { inUnit, jobsOf, type JobTable } from '../../database/jobs.ts';
import { run } from '../../database/kysely.ts';
import { createRateLimiter, RateLimiterRow } from '../../database/rate-limiter.ts';

/** Name of the queue. A migration creates it with its options, such as the delays of retries. */
export const MAIL_QUEUE = 'mail';
/** Maximum number of unsent mails. More are a sign of abuse from many networks. */
const MAX_QUEUED = 10_000;
/** Length of the window of both limits, in seconds. */
const WINDOW_SECONDS = 3_600;

/** Recent mail requests by network and by addressee. */
@Entity({ tableName: 'mail_count' })
export class MailCount extends RateLimiterRow {}

/**
 * A requested mail that is not sent yet. It holds no content: no token, and not whether an account
 * exists.
 */
export interface QueuedMail {
  /** Selects the writer (`mailWriters` in src/features.ts). */
  kind: string;
  /** The mail address or username from the request. */
  addressee: string;
}

/**
 * Enqueues a mail that anybody may request, in the current transaction. The mail worker writes and
 * sends it after the commit. A queued mail of the same kind to the same addressee is not
 * duplicated. Whether or not there is an account, throws RATE_LIMITED after too many requests of the
 * network or for the addressee, and UNAVAILABLE while 10,000 mails are queued.
 */
export async function requestMail(ctx: Context, kind: string, addressee: string): Promise<void> {
  const { mailRequestsPerAddressPerHour, mailsPerRecipientPerHour } = ctx.config;
  await count(ctx, 'network', ctx.network ?? 'unknown', mailRequestsPerAddressPerHour);
  const singletonKey = createHash('sha256').update(`${kind}:${addressee}`).digest('hex');
  await count(ctx, 'recipient', singletonKey, mailsPerRecipientPerHour);
  await rejectFullQueue(ctx);
  const mail: QueuedMail = { kind, addressee };
  await (await jobsOf(ctx)).send(MAIL_QUEUE, mail, { singletonKey, ...inUnit(ctx.em) });
}

async function rejectFullQueue(ctx: Context): Promise<void> {
  const queued = ctx.em
    .getKysely<JobTable<QueuedMail>>()
    .selectFrom('pgboss.job')
    .select('id')
    .where('name', '=', MAIL_QUEUE)
    .where('state', '<', 'completed')
    .limit(1)
    .offset(MAX_QUEUED - 1);
  if ((await run(ctx, queued)).length === 0) return;
  ctx.log.warn({ event: 'mail.throttle', outcome: 'failure', user: null }, 'Too many queued mails');
  throw new DomainError('UNAVAILABLE', 'Mail cannot be sent at the moment', [], 60);
}

async function count({ em, log }: Context, keyPrefix: string, key: string, points: number) {
  const limit = { tableName: 'mail_count', keyPrefix, points, duration: WINDOW_SECONDS };
  try {
    await createRateLimiter(em, limit).consume(key);
  } catch (error) {
    if (!(error instanceof RateLimiterRes)) throw error;
    log.warn({ event: 'mail.throttle', outcome: 'failure', user: null }, 'Too many mail requests');
    const wait = Math.max(1, Math.ceil(error.msBeforeNext / 1000));
    throw new DomainError('RATE_LIMITED', 'Too many mail requests; try again later', [], wait);
  }
}
