import { entriesAfter, isForeign, type LogPosition } from '../change-log/change-log.ts';
import { inTransaction, type Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import { counters } from '../../core/metrics.ts';
import { inBatches, BATCH_SIZE } from '../../database/batches.ts';
import { readRows } from '../../database/row-mapper.ts';
import {
  execute,
  identifier,
  literal,
  raw,
  readJson,
  readTime,
  sql,
  type Sql,
} from '../../database/sql.ts';
import { DAY_MS } from '../../core/time.ts';
import type { eventSerializers } from './event-serializers.ts';
import type { WebhookDelivery } from './webhook-delivery.entity.ts';

// The change log is the outbox: triggers write events in the transaction of the change. All
// instances share one offset into the log. Each event becomes one delivery for each webhook that
// subscribes to its kind. A lease reserves a delivery for one instance. Delivery is at least once:
// a message is sent again if an instance fails in the middle of an attempt.

/** Maximum number of change-log entries that one transaction fans out. */
const FAN_OUT_SIZE = 1_000;
/** Maximum number of concurrent deliveries of an instance to one webhook. */
const MAX_PER_WEBHOOK = 4;
/** The same maximum after a failed attempt. */
const MAX_AFTER_FAILURE = 1;
/** Duration of a lease, in ms: longer than an attempt can take. */
const LEASE_MS = 60_000;
/** Delays between attempts, in s: a day in total. */
const RETRY_DELAYS = [5, 30, 300, 1_800, 7_200, 18_000, 36_000, 23_065];
/** Maximum random deviation of a delay, as a fraction, so that concurrent retries spread out. */
const JITTER = 0.1;
const HOUR_MS = 3_600_000;
const DELIVERED_RETENTION_MS = 3 * DAY_MS;
const DEAD_RETENTION_MS = 30 * DAY_MS;
/** Maximum time a delivery may be overdue behind slower ones before it is dead, in ms. */
const MAX_OVERDUE_MS = 3 * DAY_MS;
/** Maximum length of a stored reason, in characters. */
const MAX_REASON = 200;

/** Delivery attempts by outcome. */
export const outcomes = counters(
  'shopfront_webhooks_total',
  'Attempts to deliver an event to a webhook, by outcome.',
  'outcome',
  ['delivered', 'later', 'dead', 'disabled'],
);

/** SQL expression of a new message id. */
export const NEW_MESSAGE_ID = raw(`'msg_' || replace(gen_random_uuid()::text, '-', '')`);

/** A delivery that this instance has leased for an attempt. */
export interface Claimed {
  pk: string;
  messageId: string;
  kind: keyof typeof eventSerializers;
  at: Date;
  subject: string | null;
  state: Readonly<Record<string, unknown>> | null;
  /** Number of this attempt, from 1. */
  attempts: number;
  /** End of the lease. */
  leasedUntil: Date;
  webhookPk: number;
  webhookId: string;
  url: string;
  /** Signing secrets, newest first. */
  secrets: string[];
}

/** Returns whether any webhook is enabled. */
export async function hasEnabledWebhooks(ctx: Context): Promise<boolean> {
  return (await readRows(ctx, sql`select 1 from webhook where is_enabled limit 1`)).length > 0;
}

/**
 * Creates deliveries for the next change-log entries. Returns whether there may be more entries.
 */
export function fanOut(ctx: Context): Promise<boolean> {
  return inTransaction(ctx, async (tx) => {
    const offset = await takeOffset(tx);
    if (!offset) return false;
    if (offset.isForeign) {
      await resetForeignOffsets(tx);
      return true;
    }
    const { rows } = await execute(
      tx.em,
      sql`
      with piece as (${entriesAfter(offset.position, FAN_OUT_SIZE)}),
      spread as (
        insert into webhook_delivery (message_id, webhook_pk, kind, at, subject, state, due_at)
        select ${NEW_MESSAGE_ID}, webhook.pk, piece.kind, piece.at, piece.subject, piece.state, ${ctx.now()}::timestamptz
        from piece join webhook on is_enabled and piece.kind = any(events) and not pg_visible_in_snapshot(piece.tx, since)
        order by piece.tx, piece.pk),
      moved as (
        update webhook_offset set tx = last.tx, pk = last.pk from (select tx, pk from piece order by tx desc, pk desc limit 1) as last)
      select count(*) as count from piece`,
    );
    return Number(rows[0]?.['count']) === FAN_OUT_SIZE;
  });
}

/**
 * Leases up to `count` due deliveries for a minute, with a maximum for each webhook, so that a slow
 * receiver does not delay the others. `inProgress` has the number of running deliveries by webhook.
 */
export async function claim(
  ctx: Context,
  count: number,
  inProgress: ReadonlyMap<number, number>,
): Promise<Claimed[]> {
  const now = ctx.now();
  const leasedUntil = new Date(now.getTime() + LEASE_MS);
  const max = sql`case when failed_at > coalesce(succeeded_at, created_at) then ${literal(MAX_AFTER_FAILURE)} else ${literal(MAX_PER_WEBHOOK)} end`;
  // Materialized: a plan may run a subquery again, which would lease further deliveries.
  const { rows } = await execute(
    ctx.em,
    sql`
    with due as materialized (
      select due.pk from webhook
      left join unnest(${[...inProgress.keys()]}::bigint[], ${[...inProgress.values()]}::integer[]) as busy (webhook_pk, count) on busy.webhook_pk = webhook.pk
      cross join lateral (
        select pk, due_at from webhook_delivery where webhook_pk = webhook.pk and due_at <= ${now}
        order by due_at, pk limit greatest(${max} - coalesce(busy.count, 0), 0) for update skip locked) as due
      where is_enabled order by due.due_at, due.pk limit ${literal(count)})
    update webhook_delivery as delivery set attempts = attempts + 1, due_at = ${leasedUntil}
    from due, webhook where delivery.pk = due.pk and webhook.pk = webhook_pk
    returning delivery.pk, message_id, kind, at, subject, state, attempts, webhook_pk, webhook_id, url, secret,
      case when previous_until > ${now} then previous_secret end as previous_secret`,
  );
  return rows.map((row) => ({
    pk: String(row['pk']),
    messageId: String(row['message_id']),
    // Only `fanOut` and the test of a webhook write kinds.
    kind: row['kind'] as Claimed['kind'],
    at: readTime(row['at']),
    subject: row['subject'] as string | null,
    state: readJson(row['state']) as Claimed['state'],
    attempts: Number(row['attempts']),
    leasedUntil,
    webhookPk: Number(row['webhook_pk']),
    webhookId: String(row['webhook_id']),
    url: String(row['url']),
    secrets: [row['secret'], row['previous_secret']].filter((secret) => typeof secret === 'string'),
  }));
}

/** Marks a delivery as delivered. */
export async function markDelivered(
  ctx: Context,
  delivery: Claimed,
  reason: string,
): Promise<void> {
  await recordOutcome(ctx, delivery, endedAs(ctx, 'delivered', reason), 'succeeded_at');
}

/**
 * Schedules the next attempt. `retryAfter` is the minimum delay in ms, of which at most an hour
 * counts. Returns false after the last attempt, a day after the first: the delivery is then dead.
 */
export async function retryLater(
  ctx: Context,
  delivery: Claimed,
  reason: string,
  retryAfter: number,
): Promise<boolean> {
  const seconds = RETRY_DELAYS[delivery.attempts - 1];
  if (seconds === undefined) {
    await recordOutcome(ctx, delivery, endedAs(ctx, 'dead', reason), 'failed_at');
    return false;
  }
  const delay = seconds * 1000 * (1 - JITTER + Math.random() * 2 * JITTER);
  const dueAt = new Date(ctx.now().getTime() + Math.max(delay, Math.min(retryAfter, HOUR_MS)));
  await recordOutcome(
    ctx,
    delivery,
    sql`due_at = ${dueAt}, reason = ${truncate(reason)}`,
    'failed_at',
  );
  return true;
}

/** Ends the lease without counting the attempt. The delivery is due immediately. */
export async function release(ctx: Context, { pk, leasedUntil }: Claimed): Promise<void> {
  await execute(
    ctx.em,
    sql`update webhook_delivery set attempts = attempts - 1, due_at = ${ctx.now()} where pk = ${pk} and due_at = ${leasedUntil}`,
  );
}

/**
 * Disables the webhook of the delivery and marks its pending deliveries as dead. Returns their
 * number.
 */
export async function disableWebhook(
  ctx: Context,
  { webhookPk }: Claimed,
  reason: string,
): Promise<number> {
  await execute(
    ctx.em,
    sql`update webhook set is_enabled = false, failed_at = ${ctx.now()} where pk = ${webhookPk}`,
  );
  return changeInBatches(
    ctx,
    sql`update webhook_delivery set ${endedAs(ctx, 'dead', reason)}`,
    sql`webhook_pk = ${webhookPk} and due_at is not null`,
  );
}

/** Filter of deliveries. An empty filter matches all. */
export interface DeliveryFilter {
  messageId?: string | undefined;
  /** The id of a webhook. */
  webhook?: string | undefined;
  status?: WebhookDelivery['status'] | undefined;
  /** Earliest time of the event. */
  since?: Date | undefined;
}

/** A delivery as listed for operators. */
export type ListedDelivery = Pick<
  WebhookDelivery,
  'messageId' | 'kind' | 'at' | 'status' | 'attempts' | 'dueAt' | 'reason' | 'endedAt'
> & {
  webhookId: string;
};

/** Lists at most `limit` deliveries, newest first. */
export async function listDeliveries(
  ctx: Context,
  filter: DeliveryFilter,
  limit: number,
): Promise<ListedDelivery[]> {
  const rows = await readRows(
    ctx,
    sql`
    select message_id, webhook_id, kind, at, status, attempts, due_at, reason, ended_at from webhook_delivery join webhook on webhook.pk = webhook_pk
    where ${matches(filter)} order by webhook_delivery.pk desc limit ${literal(limit)}`,
  );
  return rows.map(([messageId, webhookId, kind, at, status, attempts, dueAt, reason, endedAt]) => ({
    messageId: String(messageId),
    webhookId: String(webhookId),
    kind: String(kind),
    at: readTime(at),
    status: status as ListedDelivery['status'],
    attempts: Number(attempts),
    dueAt: dueAt === null ? null : readTime(dueAt),
    reason: reason as string | null,
    endedAt: endedAt === null ? null : readTime(endedAt),
  }));
}

/**
 * Makes ended deliveries pending again, with the same message ids and all attempts. Returns their
 * number. Throws NOT_FOUND for a message id without an ended delivery.
 */
export async function redeliver(ctx: Context, filter: DeliveryFilter): Promise<number> {
  const count = await changeInBatches(
    ctx,
    sql`update webhook_delivery set status = 'pending', attempts = 0, due_at = ${ctx.now()}, reason = null, ended_at = null`,
    sql`ended_at is not null and ${matches(filter)}`,
  );
  if (count === 0 && filter.messageId !== undefined)
    throw new DomainError('NOT_FOUND', `Delivery ${filter.messageId} not found, or still pending`);
  return count;
}

/**
 * Marks deliveries that are 3 days overdue as dead. Deletes delivered ones after 3 days and dead
 * ones after 30 days. Returns the number of deleted deliveries.
 */
export async function sweep(ctx: Context): Promise<number> {
  await expireOverdue(ctx);
  return (
    (await deleteEnded(ctx, 'delivered', DELIVERED_RETENTION_MS)) +
    (await deleteEnded(ctx, 'dead', DEAD_RETENTION_MS))
  );
}

// Bounds the backlog of a receiver that is too slow for its events.
async function expireOverdue(ctx: Context): Promise<void> {
  const since = new Date(ctx.now().getTime() - MAX_OVERDUE_MS);
  const dead = await executeInBatches(
    ctx,
    sql`
    update webhook_delivery set ${endedAs(ctx, 'dead', 'WAITED')} where pk in (
      select late.pk from webhook
      cross join lateral (
        select pk from webhook_delivery where webhook_pk = webhook.pk and due_at <= ${since}
        order by due_at limit ${literal(BATCH_SIZE)} for update skip locked) as late
      where is_enabled limit ${literal(BATCH_SIZE)})`,
  );
  if (dead === 0) return;
  outcomes.dead += dead;
  ctx.log.error(
    { event: 'webhook.dead', reason: 'WAITED', dead },
    'Webhook deliveries expired: their receivers are too slow',
  );
}

function deleteEnded(
  ctx: Context,
  status: WebhookDelivery['status'],
  retentionMs: number,
): Promise<number> {
  const until = new Date(ctx.now().getTime() - retentionMs);
  return executeInBatches(
    ctx,
    sql`
    delete from webhook_delivery where pk in (
      select pk from webhook_delivery where status = ${status} and ended_at <= ${until} order by ended_at limit ${literal(BATCH_SIZE)})`,
  );
}

/**
 * Runs the statement, in batches, on all deliveries that meet the condition. The statement must
 * make the condition false. Returns the number of deliveries.
 */
export function changeInBatches(ctx: Context, statement: Sql, condition: Sql): Promise<number> {
  // Locked, so that concurrent changes cannot make a batch look like the last one.
  return executeInBatches(
    ctx,
    sql`
    ${statement} where pk in (
      select webhook_delivery.pk from webhook_delivery join webhook on webhook.pk = webhook_pk
      where ${condition} limit ${literal(BATCH_SIZE)} for update of webhook_delivery)`,
    Infinity,
  );
}

function executeInBatches(ctx: Context, statement: Sql, maxBatches?: number): Promise<number> {
  return inBatches(async () => (await execute(ctx.em, statement)).affected, maxBatches);
}

// Locks the offset until the transaction ends and skips the entries older than all webhooks.
// Returns undefined while another instance has the lock, and without enabled webhooks.
async function takeOffset({
  em,
}: Context): Promise<{ position: LogPosition; isForeign: boolean } | undefined> {
  const { rows } = await execute(
    em,
    sql`
    select greatest(tx, earliest)::text as tx, case when earliest > tx then 0 else pk end::text as pk, ${isForeign(sql`greatest(tx, latest)`)} as is_foreign
    from webhook_offset, (
      select min(pg_snapshot_xmin(since)) as earliest, max(pg_snapshot_xmin(since)) as latest from webhook where is_enabled) as webhooks
    where earliest is not null for update of webhook_offset skip locked`,
  );
  const [row] = rows;
  return (
    row && {
      position: { tx: String(row['tx']), pk: String(row['pk']) },
      isForeign: row['is_foreign'] === true,
    }
  );
}

// Resets offsets that a restored backup has brought from another server: only new events are
// delivered.
async function resetForeignOffsets({ em }: Context): Promise<void> {
  await execute(em, sql`update webhook_offset set tx = '0', pk = 0 where ${isForeign(sql`tx`)}`);
  await execute(
    em,
    sql`update webhook set since = pg_current_snapshot() where ${isForeign(sql`pg_snapshot_xmin(since)`)}`,
  );
}

// Changes nothing if the lease has expired and another instance has claimed the delivery.
async function recordOutcome(
  ctx: Context,
  { pk, leasedUntil }: Claimed,
  changes: Sql,
  time: 'succeeded_at' | 'failed_at',
): Promise<void> {
  await execute(
    ctx.em,
    sql`
    with noted as (update webhook_delivery set ${changes} where pk = ${pk} and due_at = ${leasedUntil} returning webhook_pk)
    update webhook set ${identifier(time)} = ${ctx.now()} from noted where webhook.pk = noted.webhook_pk`,
  );
}

function endedAs(ctx: Context, status: WebhookDelivery['status'], reason: string): Sql {
  return sql`status = ${status}, reason = ${truncate(reason)}, due_at = null, ended_at = ${ctx.now()}`;
}

function truncate(reason: string): string {
  return reason.slice(0, MAX_REASON);
}

function matches({ messageId, webhook, status, since }: DeliveryFilter): Sql {
  return sql`(${messageId ?? null}::text is null or message_id = ${messageId ?? null}) and (${webhook ?? null}::text is null or webhook_id::text = ${webhook ?? null})
    and (${status ?? null}::text is null or status = ${status ?? null}) and (${since ?? null}::timestamptz is null or at >= ${since ?? null})`;
}
