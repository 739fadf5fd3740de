/** Concurrent work, counted per key and limited to the capacity of each key. */
export class Reservations {
  private readonly counts = new Map<string, number>();
  private readonly waiting = new Map<string, (() => void)[]>();
  private releases = 0;

  /**
   * Waits until each key has fewer reservations than its capacity, then reserves one of each.
   * Returns a function that releases them. Throws what `readCapacities` throws.
   */
  async reserve(
    keys: readonly string[],
    readCapacities: () => Promise<readonly number[]>,
  ): Promise<() => void> {
    let waitedFor: string | undefined;
    try {
      for (;;) {
        const before = this.releases;
        const capacities = await readCapacities();
        // Work released meanwhile may have used capacity that this result still includes.
        if (before !== this.releases) continue;
        const fullKey = keys.find((key, index) => this.countOf(key) >= (capacities[index] ?? 0));
        if (fullKey === undefined) break;
        // This waiter cannot use what was released under the other key, so another one may.
        if (waitedFor !== undefined && waitedFor !== fullKey) this.wake(waitedFor);
        waitedFor = fullKey;
        await this.waitFor(fullKey);
      }
    } catch (error) {
      if (waitedFor !== undefined) this.wake(waitedFor);
      throw error;
    }
    for (const key of keys) this.counts.set(key, this.countOf(key) + 1);
    return () => this.release(keys);
  }

  private countOf(key: string): number {
    return this.counts.get(key) ?? 0;
  }

  private release(keys: readonly string[]): void {
    this.releases++;
    for (const key of keys) {
      if (this.countOf(key) > 1) this.counts.set(key, this.countOf(key) - 1);
      else this.counts.delete(key);
      this.wake(key);
    }
  }

  private waitFor(key: string): Promise<void> {
    return new Promise((done) => {
      const queue = this.waiting.get(key) ?? [];
      queue.push(done);
      this.waiting.set(key, queue);
    });
  }

  // Wakes one waiter at a time, because each queries the database.
  private wake(key: string): void {
    const queue = this.waiting.get(key);
    queue?.shift()?.();
    if (queue?.length === 0) this.waiting.delete(key);
  }
}
