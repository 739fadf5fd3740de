import type { Context } from '../../request/context.ts';
import type { FindMailTemplate } from '../../api/mail.ts';
import { JobWorker, type Job } from '../../api/job-worker.ts';
import { unlessAborted } from '../../core/abort.ts';
import { counters } from '../../core/metrics.ts';
import { jobsOf } from '../../database/jobs.ts';
import { reserve } from './limits.ts';
import { MAIL_QUEUE, type QueuedMail } from './mail.service.ts';
import { Unsendable, type Transport } from './transport.ts';

/** Maximum number of mails that are rendered and sent concurrently. */
const MAX_CONCURRENT = 4;
/** Maximum time to send a mail, in ms. */
const SEND_TIMEOUT_MS = 60_000;

/** Attempts to send a mail by outcome. */
const outcomes = counters(
  'shopfront_mails_total',
  'Attempts to send a mail, by outcome.',
  'outcome',
  ['sent', 'later', 'refused', 'dead'],
);

/**
 * Renders and sends queued mails in the background. No request waits for a mail, so that response
 * times do not reveal whether a mail is sent.
 */
export class MailWorker extends JobWorker<QueuedMail> {
  override readonly jobs = 'mails';
  protected override readonly maxConcurrent = MAX_CONCURRENT;

  constructor(
    private readonly templates: Readonly<Record<string, FindMailTemplate>>,
    private readonly transport: Transport,
    /** Maximum time to send a mail, in ms. */
    private readonly timeoutMs = SEND_TIMEOUT_MS,
  ) {
    super();
  }

  protected override async findDue() {
    return [{ name: MAIL_QUEUE, max: MAX_CONCURRENT }];
  }

  protected override async run(
    ctx: Context,
    mail: Job<QueuedMail>,
    shutdown: AbortSignal,
  ): Promise<void> {
    const library = await jobsOf(ctx);
    try {
      await this.send(ctx, mail, shutdown);
    } catch (error) {
      if (shutdown.aborted) throw error;
      const isRetried = !(error instanceof Unsendable) && mail.retryCount < mail.retryLimit;
      logFailure(ctx, mail, error);
      if (isRetried) return void (await library.fail(MAIL_QUEUE, mail, reasonOf(error)));
    }
    // Deleted, not completed: nobody needs to know later who requested a mail.
    await library.deleteJob(MAIL_QUEUE, mail);
  }

  private async send(ctx: Context, mail: Job<QueuedMail>, shutdown: AbortSignal): Promise<void> {
    const { kind, addressee } = mail.data;
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
    const signal = AbortSignal.any([AbortSignal.timeout(this.timeoutMs), shutdown]);
    try {
      const content = await template.write();
      await unlessAborted(signal, this.transport.send({ to: template.to, ...content }));
    } catch (error) {
      await release();
      throw error;
    }
    outcomes.sent++;
    ctx.log.info({ event: 'mail.sent', kind, attempt: mail.retryCount + 1 }, 'Mail sent');
  }
}

function logFailure(ctx: Context, mail: Job<QueuedMail>, error: unknown): void {
  const fields = { kind: mail.data.kind, attempt: mail.retryCount + 1 };
  if (error instanceof Unsendable) {
    outcomes.refused++;
    const reason = reasonOf(error.cause);
    ctx.log.warn({ event: 'mail.refused', ...fields, ...reason }, 'Mail rejected permanently');
  } else if (mail.retryCount < mail.retryLimit) {
    outcomes.later++;
    const message = 'Mail could not be sent; will be retried';
    ctx.log.warn({ event: 'mail.retry', ...fields, ...reasonOf(error) }, message);
  } else {
    outcomes.dead++;
    const message = 'Mail could not be sent within a day';
    ctx.log.error({ event: 'mail.dead', ...fields, ...reasonOf(error) }, message);
  }
}

// Returns no reply text: it may repeat the recipient and the content of the mail.
function reasonOf(error: unknown): Record<string, unknown> {
  const { code, name, responseCode, command } = Object(error) as Record<string, unknown>;
  // The code of a DOMException is a number.
  return { reason: typeof code === 'string' ? code : name, reply: responseCode, command };
}
