import type { Context } from '../../request/context.ts';
import { DomainError } from '../../core/errors.ts';
import type { JobTable } from '../../database/jobs.ts';
import { run, type Columns } from '../../database/kysely.ts';
import type { QueuedEvent } from './event-serializers.ts';
import type { Webhook } from './webhook.entity.ts';

// Each webhook has a queue. A trigger of the change log adds a job to the queue of each webhook that
// subscribes to the event, in the transaction of the change. Delivery is at least once: a message is
// sent again if an instance fails in the middle of an attempt.

/** Retention of pending and of ended deliveries, in s. */
const RETENTION_S = 14 * 86_400;
/** Options of the queue of a webhook. The delays add up to about a day. */
export const QUEUE_OPTIONS = {
  retryLimit: 16,
  retryDelay: 5,
  retryBackoff: true,
  retryDelayMax: 4 * 3_600,
  // Longer than an attempt can take.
  expireInSeconds: 60,
  retentionSeconds: RETENTION_S,
  deleteAfterSeconds: RETENTION_S,
};
const MESSAGE_ID = /^msg_([\da-f]{32})$/;
/** Conditions of the state of a job, by the status that operators see. */
const STATES = {
  pending: ['<=', 'active'],
  delivered: ['=', 'completed'],
  dead: ['>', 'completed'],
} as const;

/** The tables of jobs and webhooks. */
export type Tables = JobTable<QueuedEvent> & Record<'webhook', Columns<Webhook>>;

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

/** Filter of deliveries. An empty filter matches all. */
export interface DeliveryFilter {
  messageId?: string | undefined;
  /** The id of a webhook. */
  webhook?: string | undefined;
  status?: keyof typeof STATES | undefined;
}

/**
 * Lists at most `limit` deliveries, newest first, as operators see them. `dueAt` is the time of the
 * next attempt; during an attempt, when it expires. `reason` is the outcome of the last attempt: the
 * response status, or why there was no response.
 */
export async function listDeliveries(ctx: Context, filter: DeliveryFilter, limit: number) {
  const jobs = select(ctx, filter).selectAll().orderBy('created_on', 'desc').limit(limit);
  return (await run(ctx, jobs)).map(({ id, name, data, state, completed_on: endedAt, ...job }) => {
    const expiry = Number(job.started_on) + QUEUE_OPTIONS.expireInSeconds * 1000;
    const dueAt = state === 'active' ? new Date(expiry) : job.start_after;
    const outcome = state === 'completed' ? 'delivered' : 'dead';
    return {
      messageId: messageIdOf(id),
      webhookId: webhookIdOf(name),
      kind: data.kind,
      at: new Date(data.at),
      status: endedAt ? outcome : 'pending',
      attempts: job.retry_count + (job.started_on ? 1 : 0),
      dueAt: endedAt ? null : dueAt,
      reason: outcomeOf(job.output).reason,
    };
  });
}

/**
 * Makes ended deliveries pending again, with the same message ids and all attempts. Returns their
 * number. Throws NOT_FOUND for a message id without an ended delivery.
 */
export async function redeliver(ctx: Context, filter: DeliveryFilter): Promise<number> {
  const now = new Date();
  const ended = select(ctx, filter).where('state', '>', 'active').select('id');
  const update = ctx.em
    .getKysely<Tables>()
    .updateTable('pgboss.job')
    .set({
      state: 'created',
      retry_count: 0,
      started_on: null,
      completed_on: null,
      output: null,
      start_after: now,
      keep_until: new Date(now.getTime() + RETENTION_S * 1000),
    })
    .where('id', 'in', ended);
  const count = Number((await run(ctx, update))[0]?.numUpdatedRows ?? 0);
  if (count === 0 && filter.messageId !== undefined)
    throw new DomainError('NOT_FOUND', `Delivery ${filter.messageId} not found, or still pending`);
  return count;
}

function select({ em }: Context, { messageId, webhook, status }: DeliveryFilter) {
  let jobs = em.getKysely<Tables>().selectFrom('pgboss.job').where('name', 'like', queueOf('%'));
  if (webhook !== undefined) jobs = jobs.where('name', '=', queueOf(webhook));
  if (messageId !== undefined)
    jobs = jobs.where('id', '=', MESSAGE_ID.exec(messageId)?.[1] ?? null);
  return status === undefined ? jobs : jobs.where('state', STATES[status][0], STATES[status][1]);
}

// Returns the stored outcome of an attempt. Its reason is the library's if the job has expired.
function outcomeOf(output: object | null): { reason: string | null } {
  const { value, ...outcome } = { ...output } as { value?: { message: string } };
  return { reason: value?.message ?? null, ...outcome };
}
