/** What is under way by key, so that no more is than may come of it. */
export class Flights {
  private readonly counts = new Map<string, number>();
  private readonly waiting = new Map<string, (() => void)[]>();
  private landed = 0;

  /**
   * Waits until for each key fewer are under way than `room` says there is room for, then starts one. Returns what ends it. What
   * `room` throws, it throws.
   */
  async start(keys: readonly string[], room: () => Promise<readonly number[]>): Promise<() => void> {
    let waitedFor: string | undefined;
    try {
      for (;;) {
        const before = this.landed;
        const rooms = await room();
        // What has landed meanwhile may have taken room that was still counted.
        if (before !== this.landed) continue;
        const full = keys.find((key, index) => this.countOf(key) >= (rooms[index] ?? 0));
        if (full === undefined) break;
        // It was woken for a place that it cannot take: then another may.
        if (waitedFor !== undefined && waitedFor !== full) this.wake(waitedFor);
        waitedFor = full;
        await this.turnOf(full);
      }
    } catch (error) {
      if (waitedFor !== undefined) this.wake(waitedFor);
      throw error;
    }
    for (const key of keys) this.counts.set(key, this.countOf(key) + 1);
    return () => this.land(keys);
  }

  private countOf(key: string): number {
    return this.counts.get(key) ?? 0;
  }

  private land(keys: readonly string[]): void {
    this.landed++;
    for (const key of keys) {
      if (this.countOf(key) > 1) this.counts.set(key, this.countOf(key) - 1);
      else this.counts.delete(key);
      this.wake(key);
    }
  }

  private turnOf(key: string): Promise<void> {
    return new Promise((done) => {
      const queue = this.waiting.get(key) ?? [];
      queue.push(done);
      this.waiting.set(key, queue);
    });
  }

  // One at a time: each of them asks the database.
  private wake(key: string): void {
    const queue = this.waiting.get(key);
    queue?.shift()?.();
    if (queue?.length === 0) this.waiting.delete(key);
  }
}
