import type { Context } from '../../request/context.ts';
import { onAbort } from '../../core/abort.ts';
import type { DomainError } from '../../core/errors.ts';
import type { Change, LogPosition } from './change-log.ts';

/** Buffer of changes by number. */
interface Source {
  at(number: number): Change | undefined;
  /** Schedules a read of the log. */
  requestMore(): void;
}

/** A subscriber of the change log. Each subscriber reads at its own pace. */
export class Subscriber {
  private resume: (() => void) | undefined;
  private error: DomainError | undefined;
  private readonly onAborted = () => this.wake();

  constructor(
    private readonly source: Source,
    /** Position in the log at the time of the subscription. */
    readonly start: LogPosition,
    /** Number of the next change. */
    public number: number,
    private readonly request: Context['request'],
  ) {
    onAbort(request?.signal, this.onAborted);
  }

  /** Whether the subscriber has consumed all changes. */
  get isWaiting(): boolean {
    return this.resume !== undefined;
  }

  /**
   * Waits for the next change. Returns undefined when the request is aborted. Throws the error of
   * `end`.
   */
  async next(): Promise<Change | undefined> {
    while (this.error || !this.request?.signal.aborted) {
      if (this.error) throw this.error;
      const change = this.source.at(this.number);
      if (change) {
        this.number++;
        return change;
      }
      await new Promise<void>((resume) => {
        this.resume = resume;
        this.source.requestMore();
      });
    }
    return undefined;
  }

  /** Resumes a waiting `next`. */
  wake(): void {
    this.resume?.();
    this.resume = undefined;
  }

  /**
   * Ends the subscription with an error, also for the request, which may be waiting for its client.
   */
  end(error: DomainError): void {
    this.error = error;
    this.wake();
    this.request?.end?.(error);
  }

  /** Removes the listener from the request. */
  detach(): void {
    this.request?.signal.removeEventListener('abort', this.onAborted);
  }
}
