import pLimit, { type LimitFunction } from 'p-limit';

/** Lets so many of those with the same key work at a time, in the order in which they asked. */
export class Turns {
  private readonly limits = new Map<unknown, LimitFunction>();

  constructor(private readonly atOnce = 1) {}

  /** Does the work when it is its turn, and returns what the work does. */
  async run<T>(key: unknown, work: () => Promise<T>): Promise<T> {
    const limit = this.limits.get(key) ?? pLimit(this.atOnce);
    this.limits.set(key, limit);
    try {
      return await limit(work);
    } finally {
      // Another that has asked meanwhile may have a new limit.
      if (limit.activeCount + limit.pendingCount === 0 && this.limits.get(key) === limit) this.limits.delete(key);
    }
  }

  /** Resolves when it is one's turn, which lasts until what this resolves to is called. */
  take(key: unknown): Promise<() => void> {
    return new Promise((begin) => void this.run(key, () => new Promise<void>(begin)));
  }

  /** Returns whether so many wait for their turn. */
  hasWaiting(key: unknown, count: number): boolean {
    return (this.limits.get(key)?.pendingCount ?? 0) >= count;
  }
}
