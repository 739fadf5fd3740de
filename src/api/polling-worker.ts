import type { Context } from '../request/context.ts';

/** Makes a context for a piece of work; undefined while there is no database. */
export type MakeContext = () => Context | undefined;

/** Who delivers by itself what others have asked for, in rounds: one at a time, and none on the way out. */
export abstract class Rounds {
  private round: Promise<void> | undefined;
  protected isLeaving = false;

  /**
   * Delivers all that is due; what cannot be delivered stays for later. Called over and over: while one round is under way, there is no second, and nothing to
   * wait for.
   */
  async deliver(makeContext: MakeContext): Promise<void> {
    if (this.round) return;
    this.round = this.deliverDue(makeContext).finally(() => (this.round = undefined));
    await this.round;
  }

  /** Begins no more, and waits for what is under way. */
  async stop(): Promise<void> {
    this.isLeaving = true;
    // What went wrong has been told to whoever began the round.
    await this.round?.catch(() => undefined);
  }

  protected abstract deliverDue(makeContext: MakeContext): Promise<void>;
}
