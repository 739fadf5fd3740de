const QUIET_MS = 10_000;

/** Tells of one, with how many there were. */
export type Tell<Event> = (event: Event, times: number) => void;

/**
 * What comes in bursts, such as the same trouble for each of a thousand requests: the first is told of at once, and those of the next ten
 * seconds together, by the last of them, when these are over.
 */
export class Bursts<Event> {
  private waiting: { last: Event; times: number; tell: Tell<Event> } | undefined;
  private timer: NodeJS.Timeout | undefined;

  /** Tells of it, now or later, by the function given with the last one. */
  note(event: Event, tell: Tell<Event>): void {
    if (this.timer) {
      this.waiting = { last: event, times: (this.waiting?.times ?? 0) + 1, tell };
      return;
    }
    tell(event, 1);
    this.timer = setTimeout(() => this.flush(), QUIET_MS).unref();
  }

  private flush(): void {
    const { waiting } = this;
    this.timer = undefined;
    this.waiting = undefined;
    if (!waiting) return;
    waiting.tell(waiting.last, waiting.times);
    // It goes on: what comes now is of the same burst.
    this.timer = setTimeout(() => this.flush(), QUIET_MS).unref();
  }
}
