import { setTimeout } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import type { TellEvent } from '../../api/event-serializer.ts';
import { Rounds, type MakeContext } from '../../api/polling-worker.ts';
import { claim, end, giveUp, isNeeded, leave, outcomes, postpone, spread, type Claimed } from './delivery.service.ts';
import { messageOf } from './message.ts';
import { TargetRefused, type Reply, type Send } from './http-client.ts';

/** How many are tried at a time. */
const AT_ONCE = 16;
/** How long one may take, in ms, from the look-up of its name to the end of the answer. */
const PATIENCE_MS = 15_000;
/** How often it looks for more while some take their time, in ms. */
const LOOK_EVERY_MS = 1_000;
/** How long what is under way may take on the way out, in ms. Then it is tried again later. */
const LAST_MS = 3_000;
const GONE = 410;

/** Tells webhooks what has happened, in its own time. A slow one holds up no other. */
export class Courier extends Rounds {
  /** What is under way, and to which webhook. */
  private readonly underWay = new Map<Promise<void>, number>();
  private readonly wayOut = new AbortController();

  constructor(
    private readonly tellers: Readonly<Record<string, TellEvent>>,
    private readonly send: Send,
    /** How long an attempt may take, in ms. */
    private readonly patience = PATIENCE_MS,
  ) {
    super();
  }

  override async stop(): Promise<void> {
    const ended = new AbortController();
    setTimeout(LAST_MS, undefined, { signal: ended.signal }).then(
      () => this.wayOut.abort(),
      () => undefined,
    );
    await super.stop();
    ended.abort();
  }

  protected async deliverDue(makeContext: MakeContext): Promise<void> {
    for (;;) {
      const wasIdle = this.underWay.size === 0;
      if (!this.isLeaving) await this.beginDue(makeContext);
      if (this.underWay.size > 0) await this.nextEnd();
      // What has ended while it looked makes room for more.
      else if (wasIdle || this.isLeaving) return;
    }
  }

  private async beginDue(makeContext: MakeContext): Promise<void> {
    const ctx = makeContext();
    if (!ctx || !(await isNeeded(ctx))) return;
    while (await spread(ctx)) if (this.isLeaving) return;
    const free = AT_ONCE - this.underWay.size;
    const claimed = free > 0 ? await claim(ctx, free, this.busy()) : [];
    for (const delivery of claimed) {
      const carried: Promise<void> = this.carry(makeContext() ?? ctx, delivery).finally(() => this.underWay.delete(carried));
      this.underWay.set(carried, delivery.webhookPk);
    }
  }

  /** How many are under way to each webhook. */
  private busy(): Map<number, number> {
    const busy = new Map<number, number>();
    for (const webhook of this.underWay.values()) busy.set(webhook, (busy.get(webhook) ?? 0) + 1);
    return busy;
  }

  // Or a while, for more may have become due.
  private async nextEnd(): Promise<void> {
    const over = new AbortController();
    await Promise.race([...this.underWay.keys(), setTimeout(LOOK_EVERY_MS, undefined, { signal: over.signal })]).finally(() =>
      over.abort(),
    );
  }

  private async carry(ctx: Context, delivery: Claimed): Promise<void> {
    const facts = { webhook: delivery.wid, message: delivery.mid, kind: delivery.kind, attempt: delivery.attempts };
    try {
      await this.attempt(ctx, delivery, facts);
    } catch (error) {
      // It is due again when nobody holds it any longer.
      ctx.log.error({ err: error, ...facts }, 'what became of a webhook could not be stored');
    }
  }

  private async attempt(ctx: Context, delivery: Claimed, facts: object): Promise<void> {
    const { status, reason, pause } = await this.tell(ctx, delivery);
    const told = { ...facts, reason };
    if (status !== undefined && status >= 200 && status < 300) {
      await end(ctx, delivery, reason);
      outcomes.delivered++;
      ctx.log.info({ event: 'webhook.delivered', ...told }, 'a webhook was told');
    } else if (status === GONE) {
      const dead = await giveUp(ctx, delivery, reason);
      outcomes.disabled++;
      ctx.log.error({ event: 'webhook.disabled', ...told, dead }, 'a webhook wants no more, and is disabled');
    } else if (status === undefined && this.wayOut.signal.aborted) {
      // It is we who broke off, and the receiver is not to blame.
      await leave(ctx, delivery);
    } else if (await postpone(ctx, delivery, reason, pause)) {
      outcomes.later++;
      ctx.log.warn({ event: 'webhook.later', ...told }, 'a webhook could not be told yet');
    } else {
      outcomes.dead++;
      ctx.log.error({ event: 'webhook.dead', ...told }, 'a webhook was not told within a day');
    }
  }

  // What was answered, or why nothing was, and the pause that was asked for.
  private async tell(ctx: Context, delivery: Claimed): Promise<{ status?: number; reason: string; pause: number }> {
    const late = AbortSignal.timeout(this.patience);
    try {
      const tell = this.tellers[delivery.kind];
      if (!tell) throw new Error(`nobody tells of ${delivery.kind}`);
      const message = messageOf({ ...delivery, data: tell(delivery) }, delivery.secrets, ctx.now());
      const reply = await this.send(delivery.url, message, AbortSignal.any([late, this.wayOut.signal]));
      return { status: reply.status, reason: String(reply.status), pause: pauseAskedFor(reply, ctx.now()) };
    } catch (error) {
      return { reason: late.aborted ? 'TIMEOUT' : reasonOf(error), pause: 0 };
    }
  }
}

// RFC 9110, 10.2.3: in seconds, or until when.
function pauseAskedFor({ status, retryAfter = '' }: Reply, now: Date): number {
  if (status !== 429 && status !== 503) return 0;
  const pause = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - now.getTime();
  return Math.max(pause || 0, 0);
}

// Why a target was refused is of use to whoever chose it. Of other errors the code is enough.
function reasonOf(error: unknown): string {
  if (error instanceof TargetRefused) return error.message;
  const { code, message } = Object(error) as Record<string, unknown>;
  return String(code ?? message);
}
