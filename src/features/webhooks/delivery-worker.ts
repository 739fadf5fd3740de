import type { Context } from '../../request/context.ts';
import { JobWorker, type Job } from '../../api/job-worker.ts';
import { findDue, messageIdOf, settle, webhookIdOf } from './delivery.service.ts';
import type { Attempt, QueuedEvent } from './delivery.service.ts';
import { eventSerializers } from './event-serializers.ts';
import { messageOf, type Message } from './message.ts';
import { UrlRefused, type Reply, type SendRequest } from './http-client.ts';
import { Webhook } from './webhook.entity.ts';

/** Maximum number of concurrent deliveries of an instance. */
const MAX_CONCURRENT = 16;
/** Maximum duration of an attempt, from the DNS lookup to the end of the response, in ms. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/** Maximum delay that a receiver can request by `Retry-After`, in ms. */
const MAX_RETRY_AFTER_MS = 3_600_000;

/** Delivers events to webhooks. A slow receiver does not delay the others. */
export class DeliveryWorker extends JobWorker<QueuedEvent> {
  override readonly jobs = 'webhooks';
  protected override readonly maxConcurrent = MAX_CONCURRENT;
  protected override readonly findDue = findDue;

  constructor(
    private readonly send: SendRequest,
    /** Maximum duration of an attempt, in ms. */
    private readonly timeoutMs = ATTEMPT_TIMEOUT_MS,
  ) {
    super();
  }

  protected override async run(
    ctx: Context,
    delivery: Job<QueuedEvent>,
    shutdown: AbortSignal,
  ): Promise<void> {
    const webhook = await ctx.em.findOne(
      Webhook,
      { webhookId: webhookIdOf(delivery.name) },
      { populate: ['secret', 'previousSecret'] },
    );
    // Removed meanwhile.
    if (!webhook) return;
    const timeout = AbortSignal.timeout(this.timeoutMs);
    let attempt: Attempt;
    try {
      const message = messageFor(delivery, webhook, ctx.now());
      const reply = await this.send(webhook.url, message, AbortSignal.any([timeout, shutdown]));
      const retryAfter = Math.min(retryAfterOf(reply, ctx.now()), MAX_RETRY_AFTER_MS);
      attempt = { status: reply.status, reason: String(reply.status), retryAfter };
    } catch (error) {
      // Aborted by the shutdown, not failed by the receiver.
      if (shutdown.aborted) throw error;
      attempt = { reason: timeout.aborted ? 'TIMEOUT' : reasonOf(error), retryAfter: 0 };
    }
    await settle(ctx, delivery, attempt);
  }
}

function messageFor({ id, data }: Job<QueuedEvent>, webhook: Webhook, now: Date): Message {
  const { secret, previousSecret, previousUntil } = webhook;
  const isPreviousValid = previousUntil !== null && previousUntil > now;
  return messageOf(
    {
      messageId: messageIdOf(id),
      kind: data.kind,
      at: new Date(data.at),
      data: eventSerializers[data.kind](data),
    },
    isPreviousValid && previousSecret !== null ? [secret, previousSecret] : [secret],
    now,
  );
}

// The Retry-After in ms. RFC 9110, 10.2.3: a number of seconds, or a date.
function retryAfterOf({ status, retryAfter = '' }: Reply, now: Date): number {
  if (status !== 429 && status !== 503) return 0;
  const ms = /^\d{1,9}$/.test(retryAfter)
    ? Number(retryAfter) * 1000
    : Date.parse(retryAfter) - now.getTime();
  return Math.max(ms || 0, 0);
}

// The message of a rejected URL, because the operator needs it; of other errors, the code.
function reasonOf(error: unknown): string {
  if (error instanceof UrlRefused) return error.message;
  const { code, message } = Object(error) as Record<string, unknown>;
  return String(code ?? message);
}
