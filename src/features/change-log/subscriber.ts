import type { Context } from '../../request/context.ts';
import type { DomainError } from '../../core/errors.ts';
import type { Change, Place } from './change-log.ts';

/** Where changes are taken from, by their number. */
interface Source {
  at(number: number): Change | undefined;
  /** Has more read. */
  want(): void;
}

/** One who follows the log, at a pace of its own. */
export class Follower {
  private resume: (() => void) | undefined;
  private refusal: DomainError | undefined;
  private readonly giveUp = () => this.wake();

  constructor(
    private readonly source: Source,
    /** The place in the log where it joined. */
    readonly start: Place,
    /** The number of the next change. */
    public number: number,
    private readonly request: Context['request'],
  ) {
    request?.onGiveUp(this.giveUp);
  }

  /** Whether it has had all there is. */
  get isWaiting(): boolean {
    return this.resume !== undefined;
  }

  /** The next change, when it comes; undefined once the request is given up. Throws why it was ended. */
  async next(): Promise<Change | undefined> {
    while (this.refusal || !this.request?.isGivenUp) {
      if (this.refusal) throw this.refusal;
      const change = this.source.at(this.number);
      if (change) {
        this.number++;
        return change;
      }
      await new Promise<void>((resume) => {
        this.resume = resume;
        this.source.want();
      });
    }
    return undefined;
  }

  /** Lets it look again. */
  wake(): void {
    this.resume?.();
    this.resume = undefined;
  }

  /** Ends it, and says why: to whoever asks for the next change, and to the request, which may be waiting for its client. */
  end(refusal: DomainError): void {
    this.refusal = refusal;
    this.wake();
    this.request?.end?.(refusal);
  }

  /** Lets go of the request. */
  stop(): void {
    this.request?.offGiveUp(this.giveUp);
  }
}
