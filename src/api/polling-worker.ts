import type { Context } from '../request/context.ts';

/** Creates a context for one job. Returns undefined while the database is unavailable. */
export type MakeContext = () => Context | undefined;

/** Processes queued jobs in the background, in one run at a time, and starts none after `stop`. */
export abstract class PollingWorker {
  /** What it processes, for the log. */
  abstract readonly jobs: string;
  private running: Promise<void> | undefined;
  protected isStopping = false;

  /** Processes all jobs that are due. Returns at once while another run is in progress. */
  async poll(makeContext: MakeContext): Promise<void> {
    if (this.running) return;
    this.running = this.processDue(makeContext).finally(() => (this.running = undefined));
    await this.running;
  }

  /** Starts no further jobs, and waits for the current run. */
  async stop(): Promise<void> {
    this.isStopping = true;
    // The caller of `poll` receives the error.
    await this.running?.catch(() => undefined);
  }

  protected abstract processDue(makeContext: MakeContext): Promise<void>;
}
