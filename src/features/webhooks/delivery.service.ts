import { inTransaction, type Context } from '../../request/context.ts';
import type { Job } from '../../api/job-worker.ts';
import { DomainError } from '../../core/errors.ts';
import { counters } from '../../core/metrics.ts';
import { BATCH_SIZE, inBatches } from '../../database/batches.ts';
import { inUnit, jobsOf } from '../../database/jobs.ts';
import { execute, join, literal, readTime, sql, type Sql } from '../../database/sql.ts';
import type { eventSerializers } from './event-serializers.ts';
import { Webhook } from './webhook.entity.ts';

// Each webhook has a queue. A trigger of the change log adds a job to the queue of each webhook that
// subscribes to the event, in the transaction of the change. Delivery is at least once: a message is
// sent again if an instance fails in the middle of an attempt.

/** Maximum number of concurrent deliveries of an instance to one webhook. */
const MAX_PER_WEBHOOK = 4;
/** The same maximum after a failed attempt. */
const MAX_AFTER_FAILURE = 1;
/** Retention of pending and of ended deliveries, in s. */
const RETENTION_S = 14 * 86_400;
/** Options of the queue of a webhook. The delays add up to about a day. */
const QUEUE_OPTIONS = {
  policy: 'standard',
  retryLimit: 16,
  retryDelay: 5,
  retryBackoff: true,
  retryDelayMax: 4 * 3_600,
  // Longer than an attempt can take.
  expireInSeconds: 60,
  retentionSeconds: RETENTION_S,
  deleteAfterSeconds: RETENTION_S,
};
/** Maximum length of a stored reason, in characters. */
const MAX_REASON = 200;
const MESSAGE_ID = /^msg_([\da-f]{32})$/;
const GONE = 410;

/** Delivery attempts by outcome. */
const outcomes = counters(
  'shopfront_webhooks_total',
  'Attempts to deliver an event to a webhook, by outcome.',
  'outcome',
  ['delivered', 'later', 'dead', 'disabled'],
);

/** An event for one webhook. */
export interface QueuedEvent {
  kind: keyof typeof eventSerializers;
  at: string;
  subject: string | null;
  state: Readonly<Record<string, unknown>> | null;
}

/** The status of the response, if any, the reason to record, and the minimum delay in ms. */
export interface Attempt {
  status?: number;
  reason: string;
  retryAfter: number;
}

/** Returns the `Webhook-Id` of a job's message, the same in each attempt. */
export function messageIdOf(jobId: string): string {
  return `msg_${jobId.replaceAll('-', '')}`;
}

/** Returns the name of the queue of a webhook. The trigger uses the same name. */
export function queueOf(webhookId: string): string {
  return `webhook/${webhookId}`;
}

/** Returns the id of the webhook of a queue. */
export function webhookIdOf(queue: string): string {
  return queue.slice(queueOf('').length);
}

/** Creates the queue of a new webhook in the current transaction. */
export async function createQueue({ em }: Context, webhookId: string): Promise<void> {
  const options = JSON.stringify(QUEUE_OPTIONS);
  await execute(em, sql`select pgboss.create_queue(${queueOf(webhookId)}, ${options}::jsonb)`);
}

/** Returns the enabled webhooks with due deliveries, in any order, so that none is last each time. */
export async function findDue({ em }: Context): Promise<{ name: string; max: number }[]> {
  const { rows } = await execute(
    em,
    sql`
    select webhook_id, failed_at > coalesce(succeeded_at, created_at) as has_failed from webhook
    where is_enabled and exists (
      select from pgboss.job where name = 'webhook/' || webhook_id and state < 'active' and start_after <= now())
    order by random()`,
  );
  return rows.map((row) => ({
    name: queueOf(String(row['webhook_id'])),
    max: row['has_failed'] === true ? MAX_AFTER_FAILURE : MAX_PER_WEBHOOK,
  }));
}

/**
 * Completes a delivery after a status of 200 to 299. After 410, disables the webhook and marks its
 * pending deliveries as dead. Otherwise, schedules the next attempt; after the last one, the delivery
 * is dead.
 */
export async function settle(
  ctx: Context,
  delivery: Job<QueuedEvent>,
  { status = 0, reason, retryAfter }: Attempt,
): Promise<void> {
  const { name, id, data, retryCount, retryLimit } = delivery;
  const webhookId = webhookIdOf(name);
  const isDelivered = status >= 200 && status < 300;
  const output = { reason: reason.slice(0, MAX_REASON) };
  const now = ctx.now();
  const library = await jobsOf(ctx);
  await inTransaction(ctx, async ({ em }) => {
    const unit = inUnit(em);
    if (isDelivered) await library.complete(name, delivery, output, unit);
    else await library.fail(name, delivery, output, unit);
    const next = retryAfter > 0 ? await library.getJobById(name, id, unit) : null;
    if (next?.state === 'retry' && new Date(next.startAfter).getTime() < Date.now() + retryAfter)
      await library.update(name, undefined, { id, startAfter: retryAfter / 1000, ...unit });
    const times = isDelivered ? { succeededAt: now } : { failedAt: now };
    const changes = status === GONE ? { ...times, isEnabled: false } : times;
    await em.nativeUpdate(Webhook, { webhookId }, changes);
  });
  const message = messageIdOf(id);
  const fields = {
    webhook: webhookId,
    message,
    kind: data.kind,
    attempt: retryCount + 1,
    ...output,
  };
  if (isDelivered) {
    outcomes.delivered++;
    ctx.log.info({ event: 'webhook.delivered', ...fields }, 'Webhook delivered');
  } else if (status === GONE) {
    const failed = sql`state = 'failed', completed_on = now(), output = ${JSON.stringify(output)}::jsonb`;
    const dead = await changeJobs(ctx, failed, sql`name = ${name} and state <= 'active'`);
    outcomes.disabled++;
    ctx.log.error(
      { event: 'webhook.disabled', ...fields, dead },
      'Webhook disabled: its receiver responded 410 Gone',
    );
  } else if (retryCount < retryLimit) {
    outcomes.later++;
    ctx.log.warn({ event: 'webhook.retry', ...fields }, 'Webhook delivery failed; will be retried');
  } else {
    outcomes.dead++;
    ctx.log.error({ event: 'webhook.dead', ...fields }, 'Webhook delivery failed for a day');
  }
}

/** Filter of deliveries. An empty filter matches all. */
export interface DeliveryFilter {
  messageId?: string | undefined;
  /** The id of a webhook. */
  webhook?: string | undefined;
  status?: 'pending' | 'delivered' | 'dead' | undefined;
  /** Earliest time of the event. */
  since?: Date | undefined;
}

/** Lists at most `limit` deliveries, newest first, as operators see them. */
export async function listDeliveries({ em }: Context, filter: DeliveryFilter, limit: number) {
  // `due_at` is the time of the next attempt; during an attempt, when it expires. `reason` is the
  // outcome of the last attempt: the response status, or why there was no response.
  const { rows } = await execute(
    em,
    sql`
    select id, name, data, ${STATUS} as status, retry_count + (started_on is not null)::integer as attempts,
      case when state < 'active' then start_after when state = 'active' then started_on + expire_seconds * interval '1 s' end as due_at,
      coalesce(output ->> 'reason', output -> 'value' ->> 'message') as reason
    from pgboss.job where ${matches(filter)} order by created_on desc limit ${literal(limit)}`,
  );
  return rows.map((row) => {
    const { kind, at } = row['data'] as QueuedEvent;
    return {
      messageId: messageIdOf(String(row['id'])),
      webhookId: webhookIdOf(String(row['name'])),
      kind,
      at: new Date(at),
      status: String(row['status']),
      attempts: Number(row['attempts']),
      dueAt: row['due_at'] === null ? null : readTime(row['due_at']),
      reason: row['reason'] as string | null,
    };
  });
}

/**
 * Makes ended deliveries pending again, with the same message ids and all attempts. Returns their
 * number. Throws NOT_FOUND for a message id without an ended delivery.
 */
export async function redeliver(ctx: Context, filter: DeliveryFilter): Promise<number> {
  const again = sql`
    state = 'created', retry_count = 0, started_on = null, completed_on = null, output = null,
    start_after = now(), keep_until = now() + ${RETENTION_S} * interval '1 s'`;
  const count = await changeJobs(ctx, again, sql`${matches(filter)} and state > 'active'`);
  if (count === 0 && filter.messageId !== undefined)
    throw new DomainError('NOT_FOUND', `Delivery ${filter.messageId} not found, or still pending`);
  return count;
}

const STATUS = sql`case when state = 'completed' then 'delivered' when state > 'active' then 'dead' else 'pending' end`;

function matches({ messageId, webhook, status, since }: DeliveryFilter): Sql {
  const id = messageId === undefined ? undefined : (MESSAGE_ID.exec(messageId)?.[1] ?? null);
  return join(
    [
      webhook === undefined ? sql`name like 'webhook/%'` : sql`name = ${queueOf(webhook)}`,
      ...(id === undefined ? [] : [sql`id = ${id}::uuid`]),
      ...(status === undefined ? [] : [sql`${STATUS} = ${status}`]),
      ...(since === undefined ? [] : [sql`(data ->> 'at')::timestamptz >= ${since}`]),
    ],
    ' and ',
  );
}

// Changes all deliveries that meet the condition, in batches. The change must make the condition
// false. Returns the number of deliveries.
function changeJobs({ em }: Context, change: Sql, condition: Sql): Promise<number> {
  // Locked, so that concurrent changes cannot make a batch look like the last one.
  const batch = sql`
    update pgboss.job set ${change} where (name, id) in (
      select name, id from pgboss.job where ${condition} limit ${literal(BATCH_SIZE)} for update)`;
  return inBatches(async () => (await execute(em, batch)).affected, Infinity);
}
