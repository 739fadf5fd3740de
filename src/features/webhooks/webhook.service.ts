import { randomBytes, randomUUID } from 'node:crypto';
import { inTransaction, type Context } from '../../request/context.ts';
import { badInput, DomainError } from '../../core/errors.ts';
import { DAY_MS } from '../../core/time.ts';
import { isUuid } from '../../core/uuid.ts';
import { check } from '../../core/validation.ts';
import { inUnit, jobsOf } from '../../database/jobs.ts';
import { createQueue, messageIdOf, queueOf, type QueuedEvent } from './delivery.service.ts';
import { TEST_EVENT } from './event-serializers.ts';
import { rejectionReason } from './url-policy.ts';
import { Webhook } from './webhook.entity.ts';
import { newWebhook, type NewWebhook } from './webhook.rules.ts';

const SECRET_BYTES = 32;
/** Time for which messages are also signed with the previous secret, in ms. */
const SECRET_OVERLAP_MS = DAY_MS;

/** Id and new signing secret of a webhook. The secret is shown once. */
export interface WebhookSecret {
  webhookId: string;
  secret: string;
}

/**
 * Adds a webhook, which receives the events from now on. Throws BAD_USER_INPUT, also for a URL that
 * the URL policy rejects.
 */
export async function add(ctx: Context, input: NewWebhook): Promise<WebhookSecret> {
  const { url, description = null, events } = check(newWebhook, input);
  const rejection = rejectionReason(url, ctx.config);
  if (rejection !== undefined) throw badInput('url', rejection);
  const webhook: WebhookSecret = { webhookId: randomUUID(), secret: newSecret() };
  await inTransaction(ctx, async (tx) => {
    await createQueue(tx, webhook.webhookId);
    tx.em.create(Webhook, {
      ...webhook,
      url: new URL(url).href,
      description,
      events: [...new Set(events)],
      createdAt: tx.now(),
    });
  });
  return webhook;
}

/** Lists all webhooks, oldest first, without their secrets. */
export function listAll({ em }: Context): Promise<Webhook[]> {
  return em.find(Webhook, {}, { orderBy: { createdAt: 'asc', pk: 'asc' } });
}

/** Enables a webhook for new events and resumes its pending deliveries. Throws NOT_FOUND. */
export function enable(ctx: Context, webhookId: string): Promise<void> {
  return change(ctx, webhookId, (webhook) => (webhook.isEnabled = true));
}

/** Disables a webhook. Pending deliveries remain. Throws NOT_FOUND. */
export function disable(ctx: Context, webhookId: string): Promise<void> {
  return change(ctx, webhookId, (webhook) => (webhook.isEnabled = false));
}

/** Deletes a webhook and all its deliveries. Throws NOT_FOUND. */
export async function remove(ctx: Context, webhookId: string): Promise<void> {
  // First, because no transaction adds a job after that.
  await change(ctx, webhookId, (webhook, { em }) => em.remove(webhook));
  const library = await jobsOf(ctx);
  await library.deleteAllJobs(queueOf(webhookId));
  await library.deleteQueue(queueOf(webhookId));
}

/**
 * Replaces the secret of a webhook. Messages are signed with both secrets for a day. Throws
 * NOT_FOUND.
 */
export async function rotateSecret(ctx: Context, webhookId: string): Promise<WebhookSecret> {
  const secret = newSecret();
  await change(ctx, webhookId, (webhook) => {
    webhook.previousSecret = webhook.secret;
    webhook.previousUntil = new Date(ctx.now().getTime() + SECRET_OVERLAP_MS);
    webhook.secret = secret;
  });
  return { webhookId, secret };
}

/**
 * Enqueues a test message, whatever events the webhook receives. Returns the id of the message.
 * Throws NOT_FOUND.
 */
export async function test(ctx: Context, webhookId: string): Promise<string> {
  await find(ctx, webhookId);
  const at = ctx.now().toISOString();
  const event: QueuedEvent = { kind: TEST_EVENT, at, subject: webhookId, state: null };
  const library = await jobsOf(ctx);
  return messageIdOf(String(await library.send(queueOf(webhookId), event, inUnit(ctx.em))));
}

function change(
  ctx: Context,
  webhookId: string,
  work: (webhook: Webhook, tx: Context) => unknown,
): Promise<void> {
  return inTransaction(ctx, async (tx) => void work(await find(tx, webhookId), tx));
}

async function find({ em }: Context, webhookId: string): Promise<Webhook> {
  const webhook = isUuid(webhookId)
    ? await em.findOne(Webhook, { webhookId }, { populate: ['secret'] })
    : null;
  if (!webhook) throw new DomainError('NOT_FOUND', `Webhook ${webhookId} not found`);
  return webhook;
}

function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
