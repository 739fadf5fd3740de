import { createHash } from 'node:crypto';
import type { Context } from '../../request/context.ts';
import { inUnit, jobsOf } from '../../database/jobs.ts';
import { execute, sql } from '../../database/sql.ts';

/** Name of the queue. A migration creates it with its options, such as the delays of retries. */
export const MAIL_QUEUE = 'mail';
/** Maximum number of mails in the queue. More are a sign of abuse. */
const MAX_QUEUED = 10_000;

/**
 * A requested mail that is not sent yet. It holds no content: no token, and not whether an account
 * exists.
 */
export interface QueuedMail {
  /** Selects the template (`mailTemplates` in src/features.ts). */
  kind: string;
  /** The mail address or username from the request. */
  addressee: string;
}

/**
 * Enqueues a mail in the current transaction. The mail worker renders and sends it after the
 * commit. A queued mail of the same kind to the same addressee is not duplicated. Returns false if
 * the queue is full; `force` ignores that limit.
 */
export async function enqueue(
  ctx: Context,
  kind: string,
  addressee: string,
  force = false,
): Promise<boolean> {
  const mail: QueuedMail = { kind, addressee };
  const singletonKey = createHash('sha256').update(JSON.stringify(mail)).digest('hex');
  const library = await jobsOf(ctx);
  if (!force && (await isFull(ctx))) return false;
  await library.send(MAIL_QUEUE, mail, { singletonKey, ...inUnit(ctx.em) });
  return true;
}

async function isFull({ em }: Context): Promise<boolean> {
  const count = sql`select count(*)::integer as count from pgboss.job where name = ${MAIL_QUEUE}`;
  const { rows } = await execute(em, count);
  return Number(rows[0]?.['count']) >= MAX_QUEUED;
}
