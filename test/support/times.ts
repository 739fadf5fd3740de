import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import type { Answers } from './open-load.ts';

/** Times by key, in constant memory per key. */
export class Times<Key extends string | number> {
  private readonly histograms = new Map<Key, RecordableHistogram>();

  /** Records a time in ms. */
  record(key: Key, ms: number): void {
    let known = this.histograms.get(key);
    if (!known) this.histograms.set(key, (known = createHistogram()));
    known.record(Math.max(1, Math.round(ms * 1000)));
  }

  summed(): Record<Key, Answers> {
    const all = [...this.histograms].map(([key, histogram]) => {
      const at = (percent: number) => histogram.percentile(percent) / 1000;
      return [key, { count: histogram.count, p50: at(50), p99: at(99), max: histogram.max / 1000 }];
    });
    return Object.fromEntries(all) as Record<Key, Answers>;
  }
}
