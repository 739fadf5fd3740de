import { setTimeout as pause } from 'node:timers/promises';
import type { JobWithMetadata } from 'pg-boss';
import type { Context } from '../request/context.ts';
import { jobsOf } from '../database/jobs.ts';

/** Creates a context for one job. Returns undefined while the database is unavailable. */
export type MakeContext = () => Context | undefined;

/** A job that this instance has reserved for an attempt, until its `expireInSeconds`. */
export type Job<Data> = JobWithMetadata<Data>;

/** A queue with due jobs, and the maximum number of its concurrent jobs of an instance. */
export interface DueQueue {
  name: string;
  max: number;
}

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
    clearTimeout(timer);
  }

  /** Returns the queues that have due jobs. */
  protected abstract findDue(ctx: Context): Promise<readonly DueQueue[]>;

  /**
   * Makes an attempt, and completes or fails the job. Throws if the signal of the shutdown is
   * aborted.
   */
  protected abstract run(ctx: Context, job: Job<Data>, shutdown: AbortSignal): Promise<void>;

  private async runDue(makeContext: MakeContext): Promise<void> {
    for (;;) {
      const started = this.isStopping ? 0 : await this.startDue(makeContext);
      if (this.inProgress.size > 0) await this.waitForNext();
      // Jobs that ended during the query have freed slots.
      else if (started === 0) return;
    }
  }

  private async startDue(makeContext: MakeContext): Promise<number> {
    const ctx = makeContext();
    let started = 0;
    for (const { name, max } of ctx ? await this.findDue(ctx) : []) {
      const running = [...this.inProgress.values()].filter((queue) => queue === name).length;
      const free = Math.min(max - running, this.maxConcurrent - this.inProgress.size);
      if (!ctx || free <= 0) continue;
      const library = await jobsOf(ctx);
      const options = { batchSize: free, includeMetadata: true } as const;
      for (const job of await library.fetch<Data>(name, options)) {
        const attempt: Promise<void> = this.runOne(makeContext() ?? ctx, job).finally(() =>
          this.inProgress.delete(attempt),
        );
        this.inProgress.set(attempt, name);
        started++;
      }
    }
    return started;
  }

  // Resolves after an interval at the latest, because more jobs may be due.
  private async waitForNext(): Promise<void> {
    const interval = pause(POLL_INTERVAL_MS, undefined, { ref: false });
    await Promise.race([...this.inProgress.keys(), interval]);
  }

  private async runOne(ctx: Context, job: Job<Data>): Promise<void> {
    const { signal } = this.shutdown;
    try {
      await this.run(ctx, job, signal).catch(async (error: unknown) => {
        if (!signal.aborted) throw error;
        // Another instance runs the job at once.
        const library = await jobsOf(ctx);
        await library.fail(job.name, job, { reason: 'SHUTDOWN' });
        await library.update(job.name, undefined, { id: job.id, startAfter: 0 });
      });
    } catch (error) {
      // The job is retried when it expires.
      ctx.log.error({ err: error, job: job.id }, `Outcome of ${this.jobs} could not be stored`);
    }
  }
}
