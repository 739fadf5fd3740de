import { entriesAfter, isForeign, type Place } from '../change-log/change-log.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { counters } from '../../core/metrics.ts';
import { inPieces, PIECE } from '../../database/batches.ts';
import { readRows } from '../../database/row-mapper.ts';
import { execute, identifier, literal, raw, readJson, readTime, sql, type Sql } from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import type { WebhookDelivery } from './webhook-delivery.entity.ts';

// The log of changes is the outbox: what happens is noted there in the transaction that does it. It is read on from a place that all instances share, and each
// event becomes one delivery for each webhook that is told of it. Whoever delivers one has others keep away for a while: it is delivered once, or more than once
// where somebody is lost in the middle, and never not at all.

/** How many entries of the log are made deliveries at a time. */
const SPREAD_AT_ONCE = 1_000;
/** How many of a webhook an instance tries at a time, and how many where the last attempt has failed. */
const EACH_AT_ONCE = 4;
const EACH_AFTER_FAILURE = 1;
/** How long whoever tries has others keep away, in ms: longer than an attempt can take. */
const LEASE_MS = 60_000;
/** The pauses before another attempt, in s: a day in all. */
const PAUSES = [5, 30, 300, 1_800, 7_200, 18_000, 36_000, 23_065];
/** How much longer or shorter a pause may be, by chance, so that many who failed at once do not come back at once. */
const JITTER = 0.1;
const HOUR_MS = 3_600_000;
const DELIVERED_KEPT_MS = 3 * DAY_MS;
const DEAD_KEPT_MS = 30 * DAY_MS;
/** For how long, in ms, a delivery may be due without being tried, as those before it take their time. Then it is dead. */
const MAX_WAIT_MS = 3 * DAY_MS;
const MAX_REASON = 200;

/** What became of attempts to deliver. */
export const outcomes = counters(
  'shopfront_webhooks_total',
  'Attempts to deliver an event to a webhook, by what became of them.',
  'outcome',
  ['delivered', 'later', 'dead', 'disabled'],
);

/** The id of a new message, in SQL. */
export const NEW_MID = raw(`'msg_' || replace(gen_random_uuid()::text, '-', '')`);

/** A delivery, as the one holds it who tries it. */
export interface Claimed {
  pk: string;
  mid: string;
  kind: string;
  at: Date;
  subject: string | null;
  state: Readonly<Record<string, unknown>> | null;
  /** This attempt's number, from 1. */
  attempts: number;
  /** How long nobody else tries it. */
  leasedUntil: Date;
  webhookPk: number;
  wid: string;
  url: string;
  /** The newest first. */
  secrets: string[];
}

/** Whether anybody is to be told of anything. */
export async function isNeeded(ctx: Context): Promise<boolean> {
  return (await readRows(ctx, sql`select 1 from webhook where is_enabled limit 1`)).length > 0;
}

/** Makes deliveries of what the log of changes has that nobody has been told of. Returns whether there may be more. */
export function spread(ctx: Context): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    const found = await takePlace(tx);
    if (!found) return false;
    if (found.isForeign) {
      await beginAnew(tx);
      return true;
    }
    const { rows } = await execute(
      tx.em,
      sql`
      with piece as (${entriesAfter(found.place, SPREAD_AT_ONCE)}),
      spread as (
        insert into webhook_delivery (mid, webhook_pk, kind, at, subject, state, due_at)
        select ${NEW_MID}, webhook.pk, piece.kind, piece.at, piece.subject, piece.state, ${ctx.now()}::timestamptz
        from piece join webhook on is_enabled and piece.kind = any(events) and not pg_visible_in_snapshot(piece.tx, since)
        order by piece.tx, piece.pk),
      moved as (
        update webhook_place set tx = last.tx, pk = last.pk from (select tx, pk from piece order by tx desc, pk desc limit 1) as last)
      select count(*) as count from piece`,
    );
    return Number(rows[0]?.['count']) === SPREAD_AT_ONCE;
  });
}

/**
 * Takes up to `count` deliveries that are due, so few of each webhook that a slow one does not hold up others; `busy` says how many of each are tried already.
 * Nobody else gets them until they have ended, are postponed, or a minute has passed.
 */
export async function claim(ctx: Context, count: number, busy: ReadonlyMap<number, number>): Promise<Claimed[]> {
  const now = ctx.now();
  const leasedUntil = new Date(now.getTime() + LEASE_MS);
  const most = sql`case when failed_at > coalesce(succeeded_at, created_at) then ${literal(EACH_AFTER_FAILURE)} else ${literal(EACH_AT_ONCE)} end`;
  const { rows } = await execute(
    ctx.em,
    sql`
    with due as (
      select due.pk from webhook
      left join unnest(${[...busy.keys()]}::integer[], ${[...busy.values()]}::integer[]) as busy (webhook_pk, count) on busy.webhook_pk = webhook.pk
      cross join lateral (
        select pk, due_at from webhook_delivery where webhook_pk = webhook.pk and due_at <= ${now}
        order by due_at, pk limit greatest(${most} - coalesce(busy.count, 0), 0) for update skip locked) as due
      where is_enabled order by due.due_at, due.pk limit ${literal(count)})
    update webhook_delivery as delivery set attempts = attempts + 1, due_at = ${leasedUntil}
    from due, webhook where delivery.pk = due.pk and webhook.pk = webhook_pk
    returning delivery.pk, mid, kind, at, subject, state, attempts, webhook_pk, wid, url, secret,
      case when previous_until > ${now} then previous_secret end as previous_secret`,
  );
  return rows.map((row) => ({
    pk: String(row['pk']),
    mid: String(row['mid']),
    kind: String(row['kind']),
    at: readTime(row['at']),
    subject: row['subject'] as string | null,
    state: readJson(row['state']) as Claimed['state'],
    attempts: Number(row['attempts']),
    leasedUntil,
    webhookPk: Number(row['webhook_pk']),
    wid: String(row['wid']),
    url: String(row['url']),
    secrets: [row['secret'], row['previous_secret']].filter((secret) => typeof secret === 'string'),
  }));
}

/** Notes that it has arrived. */
export async function end(ctx: Context, delivery: Claimed, reason: string): Promise<void> {
  await note(ctx, delivery, ended(ctx, 'delivered', reason), 'succeeded_at');
}

/**
 * Leaves it for later, for as long as its receiver asks at least (ms, an hour at most). Returns false where this was the last attempt, a day after the first: it
 * is dead.
 */
export async function postpone(ctx: Context, delivery: Claimed, reason: string, asked: number): Promise<boolean> {
  const seconds = PAUSES[delivery.attempts - 1];
  if (seconds === undefined) {
    await note(ctx, delivery, ended(ctx, 'dead', reason), 'failed_at');
    return false;
  }
  const pause = seconds * 1000 * (1 - JITTER + Math.random() * 2 * JITTER);
  const dueAt = new Date(ctx.now().getTime() + Math.max(pause, Math.min(asked, HOUR_MS)));
  await note(ctx, delivery, sql`due_at = ${dueAt}, reason = ${cut(reason)}`, 'failed_at');
  return true;
}

/** Leaves it as if nobody had taken it: another tries it at once. */
export async function leave(ctx: Context, { pk, leasedUntil }: Claimed): Promise<void> {
  await execute(
    ctx.em,
    sql`update webhook_delivery set attempts = attempts - 1, due_at = ${ctx.now()} where pk = ${pk} and due_at = ${leasedUntil}`,
  );
}

/** Disables the webhook, whose receiver wants no more, and gives up all that waits for it. Returns how much. */
export async function giveUp(ctx: Context, { webhookPk }: Claimed, reason: string): Promise<number> {
  await execute(ctx.em, sql`update webhook set is_enabled = false, failed_at = ${ctx.now()} where pk = ${webhookPk}`);
  return changeAll(
    ctx,
    sql`update webhook_delivery set ${ended(ctx, 'dead', reason)}`,
    sql`webhook_pk = ${webhookPk} and due_at is not null`,
  );
}

/** Which deliveries are meant: all where nothing is said. */
export interface Choice {
  mid?: string | undefined;
  /** The id of a webhook. */
  webhook?: string | undefined;
  status?: WebhookDelivery['status'] | undefined;
  /** Of events from then on. */
  since?: Date | undefined;
}

/** A delivery as operators see it. */
export type Listed = Pick<WebhookDelivery, 'mid' | 'kind' | 'at' | 'status' | 'attempts' | 'dueAt' | 'reason' | 'endedAt'> & {
  wid: string;
};

/** Deliveries, the latest first, `limit` at most. */
export async function listSome(ctx: Context, choice: Choice, limit: number): Promise<Listed[]> {
  const rows = await readRows(
    ctx,
    sql`
    select mid, wid, kind, at, status, attempts, due_at, reason, ended_at from webhook_delivery join webhook on webhook.pk = webhook_pk
    where ${chosen(choice)} order by webhook_delivery.pk desc limit ${literal(limit)}`,
  );
  return rows.map(([mid, wid, kind, at, status, attempts, dueAt, reason, endedAt]) => ({
    mid: String(mid),
    wid: String(wid),
    kind: String(kind),
    at: readTime(at),
    status: status as Listed['status'],
    attempts: Number(attempts),
    dueAt: dueAt === null ? null : readTime(dueAt),
    reason: reason as string | null,
    endedAt: endedAt === null ? null : readTime(endedAt),
  }));
}

/** Has what has ended delivered once more, under the same ids, with as many attempts as at first. Returns how many. Throws NOT_FOUND for one that has not. */
export async function redeliver(ctx: Context, choice: Choice): Promise<number> {
  const count = await changeAll(
    ctx,
    sql`update webhook_delivery set status = 'pending', attempts = 0, due_at = ${ctx.now()}, reason = null, ended_at = null`,
    sql`ended_at is not null and ${chosen(choice)}`,
  );
  if (count === 0 && choice.mid !== undefined) throw new DomainError('NOT_FOUND', `No delivery ${choice.mid} has ended`);
  return count;
}

/** Deletes what was delivered 3 days ago, and what was given up 30 days ago, and gives up what should have been tried 3 days ago. Returns how much it deleted. */
export async function sweep(ctx: Context): Promise<number> {
  await giveUpWaiting(ctx);
  return (await deleteEnded(ctx, 'delivered', DELIVERED_KEPT_MS)) + (await deleteEnded(ctx, 'dead', DEAD_KEPT_MS));
}

// Of a receiver that answers too slowly for all that happens, or else what waits for it would never come to an end.
async function giveUpWaiting(ctx: Context): Promise<void> {
  const since = new Date(ctx.now().getTime() - MAX_WAIT_MS);
  const dead = await repeated(
    ctx,
    sql`
    update webhook_delivery set ${ended(ctx, 'dead', 'WAITED')} where pk in (
      select late.pk from webhook
      cross join lateral (
        select pk from webhook_delivery where webhook_pk = webhook.pk and due_at <= ${since}
        order by due_at limit ${literal(PIECE)} for update skip locked) as late
      where is_enabled limit ${literal(PIECE)})`,
  );
  if (dead === 0) return;
  outcomes.dead += dead;
  ctx.log.error({ event: 'webhook.dead', reason: 'WAITED', dead }, 'webhooks were not told, for their receivers are too slow');
}

function deleteEnded(ctx: Context, status: WebhookDelivery['status'], keptMs: number): Promise<number> {
  const until = new Date(ctx.now().getTime() - keptMs);
  return repeated(
    ctx,
    sql`
    delete from webhook_delivery where pk in (
      select pk from webhook_delivery where status = ${status} and ended_at <= ${until} order by ended_at limit ${literal(PIECE)})`,
  );
}

/** Does to all deliveries that meet a condition, and do so no longer when it is done, what a statement says. Returns to how many. */
export function changeAll(ctx: Context, statement: Sql, condition: Sql): Promise<number> {
  // Locked, so that a piece which others are at, too, is a whole one.
  return repeated(
    ctx,
    sql`
    ${statement} where pk in (
      select webhook_delivery.pk from webhook_delivery join webhook on webhook.pk = webhook_pk
      where ${condition} limit ${literal(PIECE)} for update of webhook_delivery)`,
    Infinity,
  );
}

function repeated(ctx: Context, statement: Sql, most?: number): Promise<number> {
  return inPieces(async () => (await execute(ctx.em, statement)).affected, most);
}

// Held until the transaction ends; undefined while another instance holds it, and where nobody is to be told. What was before all webhooks is passed over.
async function takePlace({ em }: Context): Promise<{ place: Place; isForeign: boolean } | undefined> {
  const { rows } = await execute(
    em,
    sql`
    select greatest(tx, earliest)::text as tx, case when earliest > tx then 0 else pk end::text as pk, ${isForeign(sql`greatest(tx, latest)`)} as is_foreign
    from webhook_place, (
      select min(pg_snapshot_xmin(since)) as earliest, max(pg_snapshot_xmin(since)) as latest from webhook where is_enabled) as webhooks
    where earliest is not null for update of webhook_place skip locked`,
  );
  const [row] = rows;
  return row && { place: { tx: String(row['tx']), pk: String(row['pk']) }, isForeign: row['is_foreign'] === true };
}

// A backup has brought places of another server. What has happened here since then is told from now on.
async function beginAnew({ em }: Context): Promise<void> {
  await execute(em, sql`update webhook_place set tx = '0', pk = 0 where ${isForeign(sql`tx`)}`);
  await execute(em, sql`update webhook set since = pg_current_snapshot() where ${isForeign(sql`pg_snapshot_xmin(since)`)}`);
}

// Whoever was so slow that another has taken it since notes nothing.
async function note(ctx: Context, { pk, leasedUntil }: Claimed, changes: Sql, time: 'succeeded_at' | 'failed_at'): Promise<void> {
  await execute(
    ctx.em,
    sql`
    with noted as (update webhook_delivery set ${changes} where pk = ${pk} and due_at = ${leasedUntil} returning webhook_pk)
    update webhook set ${identifier(time)} = ${ctx.now()} from noted where webhook.pk = noted.webhook_pk`,
  );
}

function ended(ctx: Context, status: WebhookDelivery['status'], reason: string): Sql {
  return sql`status = ${status}, reason = ${cut(reason)}, due_at = null, ended_at = ${ctx.now()}`;
}

function cut(reason: string): string {
  return reason.slice(0, MAX_REASON);
}

function chosen({ mid, webhook, status, since }: Choice): Sql {
  return sql`(${mid ?? null}::text is null or mid = ${mid ?? null}) and (${webhook ?? null}::text is null or wid::text = ${webhook ?? null})
    and (${status ?? null}::text is null or status = ${status ?? null}) and (${since ?? null}::timestamptz is null or at >= ${since ?? null})`;
}
