import { Counter, Gauge, register } from 'prom-client';

/** A counter that is incremented in place, and read only when the metrics are collected. */
export interface Count {
  value: number;
}

/** Registers a counter without labels. Replaces an existing metric of the same name. */
export function counter(name: string, help: string): Count {
  const count = { value: 0 };
  replace(name);
  void new Counter({
    name,
    help,
    collect() {
      this.reset();
      this.inc(count.value);
    },
  });
  return count;
}

/** Registers a counter with one label, whose values are known beforehand. */
export function counters<Value extends string>(
  name: string,
  help: string,
  label: string,
  values: readonly Value[],
): Record<Value, number> {
  const counts = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>;
  replace(name);
  void new Counter({
    name,
    help,
    labelNames: [label],
    collect() {
      this.reset();
      for (const value of values) this.inc({ [label]: value }, counts[value]);
    },
  });
  return counts;
}

/** Registers a gauge that is read on collection. Replaces an existing metric of the same name. */
export function gauge(name: string, help: string, read: () => number): void {
  replace(name);
  void new Gauge({
    name,
    help,
    collect() {
      this.set(read());
    },
  });
}

/** Registers a gauge with one label. `read` returns the current number for each label value. */
export function gauges(
  name: string,
  help: string,
  label: string,
  read: () => Readonly<Record<string, number>>,
): void {
  replace(name);
  void new Gauge({
    name,
    help,
    labelNames: [label],
    collect() {
      this.reset();
      for (const [value, current] of Object.entries(read())) this.set({ [label]: value }, current);
    },
  });
}

// A process registers each metric once, but tests start several servers in one process.
function replace(name: string): void {
  register.removeSingleMetric(name);
}
