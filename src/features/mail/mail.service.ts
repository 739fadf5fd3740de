import type { Context } from '../../request/context.ts';
import { counters } from '../../core/metrics.ts';
import { execute, literal, readTime, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import * as limits from './limits.ts';

/** Maximum number of mails in the queue. More are a sign of abuse. */
const MAX_QUEUED = 10_000;
/** Duration of a lease, in ms: longer than an attempt can take. */
const LEASE_MS = 5 * 60_000;
/** Maximum age of a mail, in ms. Older mails are not sent. */
const MAX_AGE_MS = DAY_MS;
/** Delay before the second attempt, in ms. It doubles with each attempt. */
const FIRST_DELAY_MS = 10_000;
const MAX_DELAY_MS = 3_600_000;

/** Attempts to send a mail by outcome. */
export const outcomes = counters(
  'shopfront_mails_total',
  'Attempts to send a mail, by outcome.',
  'outcome',
  ['sent', 'later', 'refused', 'dead'],
);

/** A mail that this instance has leased for an attempt. */
export interface Claimed {
  kind: string;
  addressee: string;
  createdAt: Date;
  /** Number of this attempt, from 1. */
  attempts: number;
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
  const now = ctx.now();
  const { rows } = await execute(
    ctx.em,
    sql`
    with waiting as (select ${force}::boolean or count(*) < ${literal(MAX_QUEUED)} as is_room from mail),
    posted as (
      insert into mail (kind, addressee, created_at, due_at)
      select ${kind}::text, ${addressee}::text, ${now}::timestamptz, ${now}::timestamptz from waiting where is_room on conflict do nothing)
    select is_room from waiting`,
  );
  return rows[0]?.['is_room'] === true;
}

/** Leases up to `count` due mails for five minutes. */
export async function claim(ctx: Context, count: number): Promise<Claimed[]> {
  const now = ctx.now();
  // Materialized: a plan may run a subquery again, which would lease further mails.
  const { rows } = await execute(
    ctx.em,
    sql`
    with due as materialized (
      select kind, addressee from mail where due_at <= ${now} order by due_at limit ${literal(count)} for update skip locked)
    update mail set attempts = attempts + 1, due_at = ${new Date(now.getTime() + LEASE_MS)}
    from due where mail.kind = due.kind and mail.addressee = due.addressee
    returning mail.kind, mail.addressee, created_at, attempts`,
  );
  return rows.map((row) => ({
    kind: String(row['kind']),
    addressee: String(row['addressee']),
    createdAt: readTime(row['created_at']),
    attempts: Number(row['attempts']),
  }));
}

/** Deletes a mail that was sent or will never be sent. */
export async function remove(ctx: Context, mail: Claimed): Promise<void> {
  await execute(ctx.em, sql`delete from mail where ${isLeased(mail)}`);
}

/**
 * Schedules the next attempt after 10 s, then twice as long each time, up to an hour. A mail older
 * than a day is deleted instead. Returns whether the mail will be retried.
 */
export async function retryLater(ctx: Context, mail: Claimed): Promise<boolean> {
  const now = ctx.now().getTime();
  if (now - mail.createdAt.getTime() >= MAX_AGE_MS) {
    await remove(ctx, mail);
    return false;
  }
  const delay = Math.min(FIRST_DELAY_MS * 2 ** (mail.attempts - 1), MAX_DELAY_MS);
  // Shortened at random by up to a quarter, so that concurrent retries spread out.
  const dueAt = new Date(now + delay * (1 - Math.random() / 4));
  await execute(ctx.em, sql`update mail set due_at = ${dueAt} where ${isLeased(mail)}`);
  return true;
}

/**
 * Deletes mails that were not sent within a day, and expired counts. Returns the number of rows.
 */
export async function sweep(ctx: Context): Promise<number> {
  const { affected } = await execute(
    ctx.em,
    sql`delete from mail where created_at <= ${new Date(ctx.now().getTime() - MAX_AGE_MS)} and due_at <= ${ctx.now()}`,
  );
  outcomes.dead += affected;
  if (affected > 0)
    ctx.log.error({ event: 'mail.dead', mails: affected }, 'Mails could not be sent within a day');
  return affected + (await limits.sweep(ctx));
}

// Matches nothing if the lease has expired and another instance has claimed the mail.
function isLeased({ kind, addressee, attempts }: Claimed): Sql {
  return sql`kind = ${kind} and addressee = ${addressee} and attempts = ${attempts}`;
}
