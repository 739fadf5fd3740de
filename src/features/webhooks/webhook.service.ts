import { randomBytes, randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import { isUuid, check } from '../../core/validation.ts';
import { jobsOf } from '../../database/jobs.ts';
import { CHANGE_KINDS } from '../change-log/change-log.ts';
import { messageIdOf, QUEUE_OPTIONS, queueOf } from './delivery.service.ts';
import { TEST_EVENT, type QueuedEvent } from './event-serializers.ts';
import { rejectionReason } from './http-client.ts';
import { Webhook } from './webhook.entity.ts';

const newWebhook = z.object({
  url: z.string().trim().max(2_000),
  events: z
    .array(z.enum(CHANGE_KINDS, `must be one of ${CHANGE_KINDS.join(', ')}`))
    .min(1, 'must contain at least one event'),
});

/**
 * Adds a webhook, which receives the events from now on. Returns its id and its secret, which is
 * shown once. Throws BAD_USER_INPUT, also for a URL to which no message may be sent.
 */
export async function add(ctx: Context, input: z.input<typeof newWebhook>) {
  const { url, events } = check(newWebhook, input);
  const rejection = rejectionReason(url, ctx.config);
  if (rejection !== undefined) throw badInput('url', rejection);
  const webhookId = randomUUID();
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const webhook = { url: new URL(url).href, events: [...new Set(events)] };
  await (await jobsOf(ctx)).createQueue(queueOf(webhookId), QUEUE_OPTIONS);
  await ctx.em.insert(Webhook, { webhookId, secret, ...webhook, createdAt: ctx.now() });
  return { webhookId, secret };
}

/** Lists all webhooks, oldest first, without their secrets. */
export function listAll({ em }: Context): Promise<Webhook[]> {
  return em.find(Webhook, {}, { orderBy: { createdAt: 'asc', pk: 'asc' } });
}

/**
 * Enables a webhook for new events and resumes its pending deliveries, or disables it. Throws
 * NOT_FOUND.
 */
export function setEnabled({ em }: Context, webhookId: string, isEnabled: boolean): Promise<void> {
  return requireFound(webhookId, (where) => em.nativeUpdate(Webhook, where, { isEnabled }));
}

/** Deletes a webhook and all its deliveries. Throws NOT_FOUND. */
export async function remove(ctx: Context, webhookId: string): Promise<void> {
  const library = await jobsOf(ctx);
  const queue = queueOf(webhookId);
  await requireFound(webhookId, async (where) => {
    // First, because no transaction adds a job after that. An earlier attempt may have ended here.
    const deleted = await ctx.em.nativeDelete(Webhook, where);
    return deleted || Number(Boolean(await library.getQueue(queue)));
  });
  await library.deleteAllJobs(queue);
  await library.deleteQueue(queue);
}

/**
 * Enqueues a test message, whatever events the webhook receives. Returns the id of the message.
 * Throws NOT_FOUND.
 */
export async function test(ctx: Context, webhookId: string): Promise<string> {
  await requireFound(webhookId, (where) => ctx.em.count(Webhook, where));
  const at = ctx.now().toISOString();
  const event: QueuedEvent = { kind: TEST_EVENT, at, subject: webhookId, state: null };
  return messageIdOf(String(await (await jobsOf(ctx)).send(queueOf(webhookId), event)));
}

// Throws NOT_FOUND if the operation on the webhook finds none.
async function requireFound(
  webhookId: string,
  operate: (where: { webhookId: string }) => Promise<number>,
): Promise<void> {
  if (!isUuid(webhookId) || (await operate({ webhookId })) === 0)
    throw new DomainError('NOT_FOUND', `Webhook ${webhookId} not found`);
}
