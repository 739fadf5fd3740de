import type { Context } from '../../request/context.ts';
import { counters } from '../../core/metrics.ts';
import { execute, literal, readTime, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import * as limits from './limits.ts';

/** How many may wait at a time; more are asked for by nobody who means well. */
const MAX_WAITING = 10_000;
/** How long whoever tries to send has others keep away, in ms: longer than an attempt can take. */
const LEASE_MS = 5 * 60_000;
/** After a day nobody waits for it any longer. */
const LIFE_MS = DAY_MS;
const FIRST_PAUSE_MS = 10_000;
const LAST_PAUSE_MS = 3_600_000;

/** What became of attempts to send mails. */
export const outcomes = counters('shopfront_mails_total', 'Attempts to send a mail, by what became of them.', 'outcome', [
  'sent',
  'later',
  'refused',
  'dead',
]);

/** What somebody asked for, as the one holds it who tries to send it. */
export interface Claimed {
  kind: string;
  asked: string;
  createdAt: Date;
  /** This attempt's number, from 1. */
  attempts: number;
}

/**
 * Asks for a letter of this kind, in the transaction at hand; it is written and sent once that is committed (postman.ts). One that waits already is
 * not asked for twice. Returns false where 10,000 wait, and this one is not taken unless it has to be.
 */
export async function post(ctx: Context, kind: string, asked: string, hasToBe = false): Promise<boolean> {
  const now = ctx.now();
  const { rows } = await execute(
    ctx.em,
    sql`
    with waiting as (select ${hasToBe}::boolean or count(*) < ${literal(MAX_WAITING)} as is_room from mail),
    posted as (
      insert into mail (kind, asked, created_at, due_at)
      select ${kind}::text, ${asked}::text, ${now}::timestamptz, ${now}::timestamptz from waiting where is_room on conflict do nothing)
    select is_room from waiting`,
  );
  return rows[0]?.['is_room'] === true;
}

/** Takes up to `count` of those that are due. Nobody else gets them until they are sent, postponed, or five minutes have passed. */
export async function claim(ctx: Context, count: number): Promise<Claimed[]> {
  const now = ctx.now();
  const { rows } = await execute(
    ctx.em,
    sql`
    update mail set attempts = attempts + 1, due_at = ${new Date(now.getTime() + LEASE_MS)} where (kind, asked) in (
      select kind, asked from mail where due_at <= ${now} order by due_at limit ${literal(count)} for update skip locked)
    returning kind, asked, created_at, attempts`,
  );
  return rows.map((row) => ({
    kind: String(row['kind']),
    asked: String(row['asked']),
    createdAt: readTime(row['created_at']),
    attempts: Number(row['attempts']),
  }));
}

/** Forgets what has been sent, or will never be. */
export async function remove(ctx: Context, mail: Claimed): Promise<void> {
  await execute(ctx.em, sql`delete from mail where ${held(mail)}`);
}

/** Leaves it for later: after 10 s, then twice as long each time, up to an hour. Returns false where it is older than a day, and gone. */
export async function postpone(ctx: Context, mail: Claimed): Promise<boolean> {
  const now = ctx.now().getTime();
  if (now - mail.createdAt.getTime() >= LIFE_MS) {
    await remove(ctx, mail);
    return false;
  }
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** (mail.attempts - 1), LAST_PAUSE_MS);
  // By chance up to a quarter shorter, so that many who failed at once do not come back at once.
  const dueAt = new Date(now + pause * (1 - Math.random() / 4));
  await execute(ctx.em, sql`update mail set due_at = ${dueAt} where ${held(mail)}`);
  return true;
}

/** Deletes what nobody has sent within a day, and what no longer counts. Returns how much. */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from mail where created_at <= ${new Date(ctx.now().getTime() - LIFE_MS)} and due_at <= ${ctx.now()}`,
  );
  outcomes.dead += affected;
  if (affected > 0) ctx.log.error({ event: 'mail.dead', mails: affected }, 'mails were not sent within a day');
  return affected + (await limits.sweep(ctx));
}

// Who was so slow that another has taken it since holds it no longer.
function held({ kind, asked, attempts }: Claimed): Sql {
  return sql`kind = ${kind} and asked = ${asked} and attempts = ${attempts}`;
}
