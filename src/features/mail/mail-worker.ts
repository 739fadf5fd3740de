import { setTimeout } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import type { DraftLetter } from '../../api/mail.ts';
import { Rounds, type MakeContext } from '../../api/polling-worker.ts';
import { takeTurn } from './limits.ts';
import { claim, outcomes, postpone, remove, type Claimed } from './mail.service.ts';
import { Unsendable, type Transport } from './transport.ts';

/** How many are written and sent at a time. */
const AT_ONCE = 4;
/** How long one may take, in ms, whatever the mail server does. */
const PATIENCE_MS = 60_000;
/** How long what is under way may take on the way out, in ms. Then another sends it, when nobody holds it any longer. */
const LAST_MS = 3_000;

/** Writes and sends what was asked for, in its own time: nobody's request waits for it, and none can tell by its time what becomes of it. */
export class Postman extends Rounds {
  constructor(
    private readonly drafts: Readonly<Record<string, DraftLetter>>,
    private readonly transport: Transport,
    /** How long a mail may take, in ms. */
    private readonly patience = PATIENCE_MS,
  ) {
    super();
  }

  override async stop(): Promise<void> {
    await Promise.race([super.stop(), setTimeout(LAST_MS, undefined, { ref: false })]);
  }

  protected async deliverDue(makeContext: MakeContext): Promise<void> {
    while (!this.isLeaving) {
      const ctx = makeContext();
      const mails = ctx && (await claim(ctx, AT_ONCE));
      if (!ctx || !mails || mails.length === 0) return;
      const carried = await Promise.allSettled(mails.map((mail) => this.carry(makeContext() ?? ctx, mail)));
      for (const one of carried) if (one.status === 'rejected') throw one.reason;
    }
  }

  private async carry(ctx: Context, mail: Claimed): Promise<void> {
    const facts = { kind: mail.kind, attempt: mail.attempts };
    try {
      await this.send(ctx, mail);
      await remove(ctx, mail);
    } catch (error) {
      if (error instanceof Unsendable) {
        await remove(ctx, mail);
        outcomes.refused++;
        ctx.log.warn({ event: 'mail.refused', ...facts, ...reasonOf(error.cause) }, 'a mail was refused for good');
      } else if (await postpone(ctx, mail)) {
        outcomes.later++;
        ctx.log.warn({ event: 'mail.later', ...facts, ...reasonOf(error) }, 'a mail could not be sent yet');
      } else {
        outcomes.dead++;
        ctx.log.error({ event: 'mail.dead', ...facts, ...reasonOf(error) }, 'a mail was not sent within a day');
      }
    }
  }

  private async send(ctx: Context, { kind, asked, attempts }: Claimed): Promise<void> {
    const draftLetter = this.drafts[kind];
    if (!draftLetter) throw new Error(`nobody writes letters of the kind ${kind}`);
    const draft = await draftLetter(ctx, asked);
    if (!draft) return;
    const giveBack = draft.isNotice ? async () => undefined : await takeTurn(ctx, draft.countsAs ?? kind, draft.to);
    if (!giveBack) {
      ctx.log.warn({ event: 'mail.limit', kind }, 'a recipient has had enough mails for now');
      return;
    }
    try {
      await within(this.patience, this.transport.send({ to: draft.to, ...(await draft.write()) }));
    } catch (error) {
      await giveBack();
      throw error;
    }
    outcomes.sent++;
    ctx.log.info({ event: 'mail.sent', kind, attempt: attempts }, 'a mail was sent');
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  const done = new AbortController();
  const late = setTimeout(ms, undefined, { signal: done.signal }).then(() => {
    throw new Error('the mail server took too long');
  });
  try {
    await Promise.race([work, late]);
  } finally {
    done.abort();
    late.catch(() => undefined);
    work.catch(() => undefined);
  }
}

// What a mail server says may repeat whom the mail was for, and what it said.
function reasonOf(error: unknown): Record<string, unknown> {
  const { code, name, responseCode, command } = Object(error) as Record<string, unknown>;
  return { reason: code ?? name, reply: responseCode, command };
}
