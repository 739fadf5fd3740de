/** Interval between two lines, in ms. */
const INTERVAL_MS = 10_000;

/** Logs an event with the number of events that the line stands for. */
export type WriteLine<Event> = (event: Event, count: number) => void;

/**
 * Throttles the log of frequent events, such as one error for each of a thousand requests. The
 * first event is logged at once; those of each following 10 seconds as one line with the last
 * event.
 */
export class LogThrottle<Event> {
  private pending: { last: Event; count: number; writeLine: WriteLine<Event> } | undefined;
  private timer: NodeJS.Timeout | undefined;

  /** Logs the event now or later. A later line is written by the last event's `writeLine`. */
  record(event: Event, writeLine: WriteLine<Event>): void {
    if (this.timer) {
      this.pending = { last: event, count: (this.pending?.count ?? 0) + 1, writeLine };
      return;
    }
    writeLine(event, 1);
    this.timer = setTimeout(() => this.flush(), INTERVAL_MS).unref();
  }

  private flush(): void {
    const { pending } = this;
    this.timer = undefined;
    this.pending = undefined;
    if (!pending) return;
    pending.writeLine(pending.last, pending.count);
    // Events that follow now belong to the same burst.
    this.timer = setTimeout(() => this.flush(), INTERVAL_MS).unref();
  }
}
