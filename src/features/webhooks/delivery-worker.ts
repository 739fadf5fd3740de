import { setTimeout } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import { PollingWorker, type MakeContext } from '../../api/polling-worker.ts';
import {
  claim,
  markDelivered,
  disableWebhook,
  hasEnabledWebhooks,
  release,
  outcomes,
  retryLater,
  fanOut,
  type Claimed,
} from './delivery.service.ts';
import { eventSerializers } from './event-serializers.ts';
import { messageOf } from './message.ts';
import { UrlRefused, type Reply, type SendRequest } from './http-client.ts';

/** Maximum number of concurrent deliveries of an instance. */
const MAX_CONCURRENT = 16;
/** Maximum duration of an attempt, from the DNS lookup to the end of the response, in ms. */
const ATTEMPT_TIMEOUT_MS = 15_000;
/** Interval of checks for due deliveries while others are in progress, in ms. */
const POLL_INTERVAL_MS = 1_000;
/** Time on shutdown until deliveries in progress are aborted and released, in ms. */
const SHUTDOWN_GRACE_MS = 3_000;
const GONE = 410;

/** Delivers events to webhooks in the background. A slow receiver does not delay the others. */
export class DeliveryWorker extends PollingWorker {
  override readonly jobs = 'webhooks';

  /** Deliveries in progress, each with the primary key of its webhook. */
  private readonly inProgress = new Map<Promise<void>, number>();
  private readonly shutdown = new AbortController();

  constructor(
    private readonly send: SendRequest,
    /** Maximum duration of an attempt, in ms. */
    private readonly timeoutMs = ATTEMPT_TIMEOUT_MS,
  ) {
    super();
  }

  override async stop(): Promise<void> {
    const ended = new AbortController();
    setTimeout(SHUTDOWN_GRACE_MS, undefined, { signal: ended.signal }).then(
      () => this.shutdown.abort(),
      () => undefined,
    );
    await super.stop();
    ended.abort();
  }

  protected async processDue(makeContext: MakeContext): Promise<void> {
    for (;;) {
      const wasIdle = this.inProgress.size === 0;
      if (!this.isStopping) await this.startDue(makeContext);
      if (this.inProgress.size > 0) await this.waitForNext();
      // Deliveries that ended during the query have freed slots.
      else if (wasIdle || this.isStopping) return;
    }
  }

  private async startDue(makeContext: MakeContext): Promise<void> {
    const ctx = makeContext();
    if (!ctx || !(await hasEnabledWebhooks(ctx))) return;
    while (await fanOut(ctx)) if (this.isStopping) return;
    const free = MAX_CONCURRENT - this.inProgress.size;
    const claimed = free > 0 ? await claim(ctx, free, this.countRunning()) : [];
    for (const delivery of claimed) {
      const attempt: Promise<void> = this.deliverOne(makeContext() ?? ctx, delivery).finally(() =>
        this.inProgress.delete(attempt),
      );
      this.inProgress.set(attempt, delivery.webhookPk);
    }
  }

  /** Returns the number of deliveries in progress of each webhook. */
  private countRunning(): Map<number, number> {
    const counts = new Map<number, number>();
    for (const webhook of this.inProgress.values())
      counts.set(webhook, (counts.get(webhook) ?? 0) + 1);
    return counts;
  }

  // Resolves after an interval at the latest, because more deliveries may be due.
  private async waitForNext(): Promise<void> {
    const done = new AbortController();
    await Promise.race([
      ...this.inProgress.keys(),
      setTimeout(POLL_INTERVAL_MS, undefined, { signal: done.signal }),
    ]).finally(() => done.abort());
  }

  private async deliverOne(ctx: Context, delivery: Claimed): Promise<void> {
    const fields = {
      webhook: delivery.webhookId,
      message: delivery.messageId,
      kind: delivery.kind,
      attempt: delivery.attempts,
    };
    try {
      await this.attempt(ctx, delivery, fields);
    } catch (error) {
      // The delivery is due again when its lease expires.
      ctx.log.error({ err: error, ...fields }, 'Webhook delivery outcome could not be stored');
    }
  }

  private async attempt(ctx: Context, delivery: Claimed, fields: object): Promise<void> {
    const { status, reason, retryAfter } = await this.post(ctx, delivery);
    const logged = { ...fields, reason };
    if (status !== undefined && status >= 200 && status < 300) {
      await markDelivered(ctx, delivery, reason);
      outcomes.delivered++;
      ctx.log.info({ event: 'webhook.delivered', ...logged }, 'Webhook delivered');
    } else if (status === GONE) {
      const dead = await disableWebhook(ctx, delivery, reason);
      outcomes.disabled++;
      ctx.log.error(
        { event: 'webhook.disabled', ...logged, dead },
        'Webhook disabled: its receiver responded 410 Gone',
      );
    } else if (status === undefined && this.shutdown.signal.aborted) {
      // Aborted by the shutdown, not failed by the receiver.
      await release(ctx, delivery);
    } else if (await retryLater(ctx, delivery, reason, retryAfter)) {
      outcomes.later++;
      ctx.log.warn(
        { event: 'webhook.retry', ...logged },
        'Webhook delivery failed; will be retried',
      );
    } else {
      outcomes.dead++;
      ctx.log.error({ event: 'webhook.dead', ...logged }, 'Webhook delivery failed for a day');
    }
  }

  // Returns the status of the response, if any, the reason to record, and the Retry-After in ms.
  private async post(
    ctx: Context,
    delivery: Claimed,
  ): Promise<{ status?: number; reason: string; retryAfter: number }> {
    const timeout = AbortSignal.timeout(this.timeoutMs);
    try {
      const message = messageOf(
        { ...delivery, data: eventSerializers[delivery.kind](delivery) },
        delivery.secrets,
        ctx.now(),
      );
      const reply = await this.send(
        delivery.url,
        message,
        AbortSignal.any([timeout, this.shutdown.signal]),
      );
      return {
        status: reply.status,
        reason: String(reply.status),
        retryAfter: retryAfterOf(reply, ctx.now()),
      };
    } catch (error) {
      return { reason: timeout.aborted ? 'TIMEOUT' : reasonOf(error), retryAfter: 0 };
    }
  }
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
