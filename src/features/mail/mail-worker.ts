import { setTimeout } from 'node:timers/promises';
import type { Context } from '../../request/context.ts';
import type { FindMailTemplate } from '../../api/mail.ts';
import { PollingWorker, type MakeContext } from '../../api/polling-worker.ts';
import { reserve } from './limits.ts';
import { claim, outcomes, retryLater, remove, type Claimed } from './mail.service.ts';
import { Unsendable, type Transport } from './transport.ts';

/** Maximum number of mails that are rendered and sent concurrently. */
const MAX_CONCURRENT = 4;
/** Maximum time to send a mail, in ms. */
const SEND_TIMEOUT_MS = 60_000;
/**
 * Maximum wait on shutdown for mails in progress, in ms. Another instance sends them after the
 * lease.
 */
const SHUTDOWN_GRACE_MS = 3_000;

/**
 * Renders and sends queued mails in the background. No request waits for a mail, so that response
 * times do not reveal whether a mail is sent.
 */
export class MailWorker extends PollingWorker {
  override readonly jobs = 'mails';

  constructor(
    private readonly templates: Readonly<Record<string, FindMailTemplate>>,
    private readonly transport: Transport,
    /** Maximum time to send a mail, in ms. */
    private readonly timeoutMs = SEND_TIMEOUT_MS,
  ) {
    super();
  }

  override async stop(): Promise<void> {
    await Promise.race([super.stop(), setTimeout(SHUTDOWN_GRACE_MS, undefined, { ref: false })]);
  }

  protected async processDue(makeContext: MakeContext): Promise<void> {
    while (!this.isStopping) {
      const ctx = makeContext();
      const mails = ctx && (await claim(ctx, MAX_CONCURRENT));
      if (!ctx || !mails || mails.length === 0) return;
      const results = await Promise.allSettled(
        mails.map((mail) => this.deliverOne(makeContext() ?? ctx, mail)),
      );
      for (const result of results) if (result.status === 'rejected') throw result.reason;
    }
  }

  private async deliverOne(ctx: Context, mail: Claimed): Promise<void> {
    const fields = { kind: mail.kind, attempt: mail.attempts };
    try {
      await this.send(ctx, mail);
      await remove(ctx, mail);
    } catch (error) {
      if (error instanceof Unsendable) {
        await remove(ctx, mail);
        outcomes.refused++;
        ctx.log.warn(
          { event: 'mail.refused', ...fields, ...reasonOf(error.cause) },
          'Mail rejected permanently',
        );
      } else if (await retryLater(ctx, mail)) {
        outcomes.later++;
        ctx.log.warn(
          { event: 'mail.retry', ...fields, ...reasonOf(error) },
          'Mail could not be sent; will be retried',
        );
      } else {
        outcomes.dead++;
        ctx.log.error(
          { event: 'mail.dead', ...fields, ...reasonOf(error) },
          'Mail could not be sent within a day',
        );
      }
    }
  }

  private async send(ctx: Context, { kind, addressee, attempts }: Claimed): Promise<void> {
    const renderMail = this.templates[kind];
    if (!renderMail) throw new Error(`No template for mails of kind ${kind}`);
    const template = await renderMail(ctx, addressee);
    if (!template) return;
    const release = template.isNotice
      ? async () => undefined
      : await reserve(ctx, template.countsAs ?? kind, template.to);
    if (!release) {
      ctx.log.warn({ event: 'mail.limit', kind }, 'Mail dropped: limit of its recipient reached');
      return;
    }
    try {
      await withTimeout(
        this.timeoutMs,
        this.transport.send({ to: template.to, ...(await template.write()) }),
      );
    } catch (error) {
      await release();
      throw error;
    }
    outcomes.sent++;
    ctx.log.info({ event: 'mail.sent', kind, attempt: attempts }, 'Mail sent');
  }
}

async function withTimeout(ms: number, work: Promise<void>): Promise<void> {
  const done = new AbortController();
  const timeout = setTimeout(ms, undefined, { signal: done.signal }).then(() => {
    throw new Error('Mail server timed out');
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    done.abort();
    timeout.catch(() => undefined);
    work.catch(() => undefined);
  }
}

// Logs no reply text: it may repeat the recipient and the content of the mail.
function reasonOf(error: unknown): Record<string, unknown> {
  const { code, name, responseCode, command } = Object(error) as Record<string, unknown>;
  return { reason: code ?? name, reply: responseCode, command };
}
