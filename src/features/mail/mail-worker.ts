import type { Context } from '../../request/context.ts';
import type { WriteMail } from '../../api/mail.ts';
import { JobWorker } from '../../api/job-worker.ts';
import { unlessAborted } from '../../core/abort.ts';
import { counters } from '../../core/metrics.ts';
import { jobsOf, type Job } from '../../database/jobs.ts';
import { MAIL_QUEUE, type QueuedMail } from './mail.service.ts';
import { isPermanent, type Transport } from './transport.ts';
import { deleteUntil } from '../../database/kysely.ts';

/** Maximum number of mails that are written and sent concurrently. */
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
 * Writes and sends queued mails in the background. No request waits for a mail, so that response
 * times do not reveal whether a mail is sent.
 */
export class MailWorker extends JobWorker<QueuedMail> {
  override readonly jobs = 'mails';
  protected override readonly maxConcurrent = MAX_CONCURRENT;

  constructor(
    private readonly writers: Readonly<Record<string, WriteMail>>,
    private readonly transport: Transport,
    private readonly timeoutMs = SEND_TIMEOUT_MS,
  ) {
    super();
  }

  protected override async findDue() {
    return [{ name: MAIL_QUEUE, max: MAX_CONCURRENT }];
  }

  protected override async run(
    ctx: Context,
    job: Job<QueuedMail>,
    shutdown: AbortSignal,
  ): Promise<void> {
    const { kind, addressee } = job.data;
    const fields = { kind, attempt: job.retryCount + 1 };
    const library = await jobsOf(ctx);
    try {
      const mail = await this.writers[kind]?.(ctx, addressee);
      if (mail) {
        const signal = AbortSignal.any([AbortSignal.timeout(this.timeoutMs), shutdown]);
        await unlessAborted(signal, this.transport.send(mail));
        outcomes.sent++;
        ctx.log.info({ event: 'mail.sent', ...fields }, 'Mail sent');
      }
    } catch (error) {
      if (shutdown.aborted) throw error;
      const reason = reasonOf(error);
      if (isPermanent(error)) {
        outcomes.refused++;
        ctx.log.warn({ event: 'mail.refused', ...fields, ...reason }, 'Mail rejected permanently');
      } else if (job.retryCount < job.retryLimit) {
        outcomes.later++;
        ctx.log.warn({ event: 'mail.retry', ...fields, ...reason }, 'Mail will be retried');
        return void (await library.fail(MAIL_QUEUE, job, reason));
      } else {
        outcomes.dead++;
        ctx.log.error({ event: 'mail.dead', ...fields, ...reason }, 'Mail not sent within a day');
      }
    }
    // Deleted, not completed: nobody needs to know later who requested a mail.
    await library.deleteJob(MAIL_QUEUE, job);
  }
}

/** Deletes expired counts of the limits. Returns the number of rows. */
export function sweep(ctx: Context): Promise<number> {
  return deleteUntil(ctx, 'mail_count', 'expire', String(Date.now()));
}

// Returns no reply text: it may repeat the recipient and the content of the mail.
function reasonOf(error: unknown): Record<string, unknown> {
  const { code, name, responseCode, command } = Object(error) as Record<string, unknown>;
  // The code of a DOMException is a number.
  return { reason: typeof code === 'string' ? code : name, reply: responseCode, command };
}
