import { setTimeout as pause } from 'node:timers/promises';
import { inTransaction, type Context } from '../request/context.ts';
import { inUnit, jobsOf, type Job } from '../database/jobs.ts';

/** Creates a context for one job. Returns undefined while the database is unavailable. */
export type MakeContext = () => Context | undefined;

/** Interval of checks for due jobs while others are in progress, in ms. */
const POLL_INTERVAL_MS = 1_000;
/** Time on shutdown until jobs in progress are aborted, in ms. */
const SHUTDOWN_GRACE_MS = 3_000;

/** Runs due jobs in the background. A slow queue does not delay the others. */
export abstract class JobWorker<Data extends object> {
  /** What the jobs deliver, for the log. */
  abstract readonly jobs: string;
  /** Maximum number of concurrent jobs of an instance. */
  protected abstract readonly maxConcurrent: number;
  /** Jobs in progress, each with the name of its queue. */
  private readonly inProgress = new Map<Promise<void>, string>();
  private readonly shutdown = new AbortController();
  private polling: Promise<void> | undefined;
  private isStopping = false;

  /** Runs all jobs that are due. Another call meanwhile waits for the same jobs. */
  poll(makeContext: MakeContext): Promise<void> {
    return (this.polling ??= this.runDue(makeContext).finally(() => (this.polling = undefined)));
  }

  /** Starts no further jobs, and waits for those in progress. Aborts them after 3 s. */
  async stop(): Promise<void> {
    this.isStopping = true;
    const timer = setTimeout(() => this.shutdown.abort(), SHUTDOWN_GRACE_MS);
    // The caller of `poll` receives the error.
    await this.polling?.catch(() => undefined);
    // A poll that failed does not wait for them.
    await Promise.all(this.inProgress.keys());
    clearTimeout(timer);
  }

  /** Returns the queues that have due jobs, each with the maximum number of its concurrent jobs. */
  protected abstract findDue(ctx: Context): Promise<readonly { name: string; max: number }[]>;

  /** Makes an attempt, and completes or fails the job. Throws if the shutdown has aborted it. */
  protected abstract run(ctx: Context, job: Job<Data>, shutdown: AbortSignal): Promise<void>;

  private async runDue(makeContext: MakeContext): Promise<void> {
    // Jobs that ended during the query have freed slots.
    while ((await this.startDue(makeContext)) > 0 || this.inProgress.size > 0) {
      if (this.inProgress.size === 0) continue;
      // More jobs may become due meanwhile.
      const interval = pause(POLL_INTERVAL_MS, undefined, { ref: false });
      await Promise.race([...this.inProgress.keys(), interval]);
    }
  }

  private async startDue(makeContext: MakeContext): Promise<number> {
    const ctx = this.isStopping ? undefined : makeContext();
    if (!ctx) return 0;
    let started = 0;
    for (const { name, max } of await this.findDue(ctx)) {
      const running = [...this.inProgress.values()].filter((queue) => queue === name).length;
      const batchSize = Math.min(max - running, this.maxConcurrent - this.inProgress.size);
      if (batchSize <= 0) continue;
      const library = await jobsOf(ctx);
      for (const job of await library.fetch<Data>(name, { batchSize, includeMetadata: true })) {
        const attempt: Promise<void> = this.runOne(makeContext() ?? ctx, job).finally(() =>
          this.inProgress.delete(attempt),
        );
        this.inProgress.set(attempt, name);
        started++;
      }
    }
    return started;
  }

  private async runOne(ctx: Context, job: Job<Data>): Promise<void> {
    const { signal } = this.shutdown;
    try {
      await this.run(ctx, job, signal).catch(async (error: unknown) => {
        if (!signal.aborted) throw error;
        // Another instance runs the job at once.
        const library = await jobsOf(ctx);
        await inTransaction(ctx, async ({ em }) => {
          const unit = inUnit(em);
          await library.fail(job.name, job, { reason: 'SHUTDOWN' }, unit);
          // The last attempt, which would be dead.
          await library.retry(job.name, job.id, unit);
          await library.update(job.name, undefined, { id: job.id, startAfter: 0, ...unit });
        });
      });
    } catch (error) {
      // The job is retried when it expires.
      ctx.log.error({ err: error, job: job.id }, `Outcome of ${this.jobs} could not be stored`);
    }
  }
}
