import { Webhook as Signer } from 'standardwebhooks';
import { inTransaction, type Context } from '../../request/context.ts';
import { JobWorker } from '../../api/job-worker.ts';
import { counters } from '../../core/metrics.ts';
import { VERSION } from '../../core/version.ts';
import { inUnit, jobsOf, type Job } from '../../database/jobs.ts';
import { run } from '../../database/kysely.ts';
import { messageIdOf, queueOf, webhookIdOf, type Tables } from './delivery.service.ts';
import { eventSerializers, type QueuedEvent } from './event-serializers.ts';
import type { Message, SendRequest } from './http-client.ts';
import { Webhook } from './webhook.entity.ts';

/** Maximum duration of an attempt, from the DNS lookup to the end of the response, in ms. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/** Maximum number of concurrent deliveries of an instance to one webhook. */
const MAX_PER_WEBHOOK = 4;
/** The same maximum after a failed attempt. */
const MAX_AFTER_FAILURE = 1;
/** Status of a response that disables the webhook (Standard Webhooks). */
const GONE = 410;

/** Delivery attempts by outcome. */
const outcomes = counters(
  'shopfront_webhooks_total',
  'Attempts to deliver an event to a webhook, by outcome.',
  'outcome',
  ['delivered', 'later', 'dead', 'disabled'],
);

/** Delivers events to webhooks. A slow receiver does not delay the others. */
export class DeliveryWorker extends JobWorker<QueuedEvent> {
  override readonly jobs = 'webhooks';
  protected override readonly maxConcurrent = 16;
  protected override readonly findDue = findDue;

  constructor(
    private readonly send: SendRequest,
    private readonly timeoutMs = ATTEMPT_TIMEOUT_MS,
  ) {
    super();
  }

  protected override async run(
    ctx: Context,
    delivery: Job<QueuedEvent>,
    shutdown: AbortSignal,
  ): Promise<void> {
    const webhookId = webhookIdOf(delivery.name);
    const webhook = await ctx.em.findOne(Webhook, { webhookId }, { populate: ['secret'] });
    // Removed meanwhile.
    if (!webhook) return;
    const timeout = AbortSignal.timeout(this.timeoutMs);
    let outcome: number | string;
    try {
      const message = messageFor(delivery, webhook, ctx.now());
      outcome = await this.send(webhook.url, message, AbortSignal.any([timeout, shutdown]));
    } catch (error) {
      // Aborted by the shutdown, not failed by the receiver.
      if (shutdown.aborted) throw error;
      const { code, message } = Object(error) as Record<string, unknown>;
      outcome = timeout.aborted ? 'TIMEOUT' : String(code ?? message);
    }
    await settle(ctx, delivery, outcome);
  }
}

/** Returns the enabled webhooks with due deliveries, in any order, so that none is last each time. */
export async function findDue(ctx: Context): Promise<{ name: string; max: number }[]> {
  const webhooks = ctx.em
    .getKysely<Tables>()
    .selectFrom('webhook')
    .select(['webhook_id', 'failed_at', 'succeeded_at', 'created_at'])
    .orderBy((eb) => eb.fn('random'));
  const due = webhooks.where('is_enabled', '=', true).where((eb) =>
    eb.exists(
      eb
        .selectFrom('pgboss.job')
        .select('id')
        .where('name', '=', eb(eb.val(queueOf('')), '||', eb.ref('webhook_id')))
        .where('state', '<', 'active')
        // The condition of the library's index of waiting jobs.
        .where((job) => job.not(job.ref('blocked')))
        .where('start_after', '<=', eb.fn<Date>('now')),
    ),
  );
  return (await run(ctx, due)).map(
    ({ webhook_id: id, failed_at: failedAt, succeeded_at, created_at }) => ({
      name: queueOf(id),
      max:
        failedAt && failedAt > (succeeded_at ?? created_at) ? MAX_AFTER_FAILURE : MAX_PER_WEBHOOK,
    }),
  );
}

/**
 * Stores the outcome of an attempt: the status of the response, or the reason why there was none.
 * Completes the delivery after a status of 200 to 299. Otherwise, schedules the next attempt; after
 * the last one, the delivery is dead. 410 also disables the webhook, whose deliveries then wait.
 */
export async function settle(
  ctx: Context,
  { name, id, data, retryCount, retryLimit }: Job<QueuedEvent>,
  outcome: number | string,
): Promise<void> {
  const isDelivered = typeof outcome === 'number' && outcome >= 200 && outcome < 300;
  const output = { reason: String(outcome).slice(0, 200) };
  const library = await jobsOf(ctx);
  await inTransaction(ctx, async (tx) => {
    const times = isDelivered ? { succeededAt: tx.now() } : { failedAt: tx.now() };
    const changes = outcome === GONE ? { ...times, isEnabled: false } : times;
    await tx.em.nativeUpdate(Webhook, { webhookId: webhookIdOf(name) }, changes);
    const attempt = { id, retryCount };
    if (isDelivered) await library.complete(name, attempt, output, inUnit(tx.em));
    else await library.fail(name, attempt, output, inUnit(tx.em));
  });
  const attempt = { message: messageIdOf(id), kind: data.kind, attempt: retryCount + 1 };
  const fields = { webhook: webhookIdOf(name), ...attempt, ...output };
  if (isDelivered) {
    outcomes.delivered++;
    ctx.log.info({ event: 'webhook.delivered', ...fields }, 'Webhook delivered');
  } else if (outcome === GONE) {
    outcomes.disabled++;
    ctx.log.error({ event: 'webhook.disabled', ...fields }, 'Webhook disabled by its receiver');
  } else if (retryCount < retryLimit) {
    outcomes.later++;
    ctx.log.warn({ event: 'webhook.retry', ...fields }, 'Webhook delivery failed; will be retried');
  } else {
    outcomes.dead++;
    ctx.log.error({ event: 'webhook.dead', ...fields }, 'Webhook delivery failed for a day');
  }
}

/**
 * Returns an event as a message of Standard Webhooks (https://www.standardwebhooks.com), signed at
 * the time `now`.
 */
function messageFor({ id, data }: Job<QueuedEvent>, { secret }: Webhook, now: Date): Message {
  const messageId = messageIdOf(id);
  const body = JSON.stringify({
    type: data.kind,
    timestamp: new Date(data.at).toISOString(),
    data: eventSerializers[data.kind](data),
  });
  return {
    headers: {
      'Content-Type': 'application/json',
      'User-Agent': `Shopfront/${VERSION}`,
      'Webhook-Id': messageId,
      'Webhook-Timestamp': String(Math.floor(now.getTime() / 1000)),
      'Webhook-Signature': new Signer(secret).sign(messageId, now, body),
    },
    body,
  };
}
