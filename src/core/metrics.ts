import { Counter, Gauge, Histogram, register } from 'prom-client';

/** A counter that is incremented in place, and read only when the metrics are collected. */
export interface Count {
  value: number;
}

/** Registers a counter without labels. */
export function counter(name: string, help: string): Count {
  const count = { value: 0 };
  collect(Counter, name, help, undefined, () => ({ ...count }));
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
  collect(Counter, name, help, label, () => counts);
  return counts;
}

/** Registers a gauge that is read on collection. */
export function gauge(name: string, help: string, read: () => number): void {
  collect(Gauge, name, help, undefined, () => ({ value: read() }));
}

/** Registers a gauge with one label. `read` returns the current number for each label value. */
export function gauges(
  name: string,
  help: string,
  label: string,
  read: () => Readonly<Record<string, number>>,
): void {
  collect(Gauge, name, help, label, read);
}

/** Registers a histogram. Returns a function that adds a duration in ms to that of these labels. */
export function durations(
  name: string,
  help: string,
  labelNames: string[],
  buckets: number[],
): (ms: number, ...labels: string[]) => void {
  replace(name);
  const histogram = new Histogram({ name, help, labelNames, buckets });
  // Cached, because the library's lookup takes longer than the measurement. Labels are few.
  const measures = new Map<string, Histogram.Internal<string>>();
  return (ms, ...labels) => {
    const key = labels.join('\n');
    const measure = measures.get(key) ?? histogram.labels(...labels);
    measures.set(key, measure);
    measure.observe(ms / 1000);
  };
}

/** What counters and gauges have in common. */
interface Metric {
  reset(): void;
  inc(labels: Record<string, string>, value: number): void;
}

interface Configuration {
  name: string;
  help: string;
  labelNames: string[];
  collect(this: Metric): void;
}

function collect(
  Type: new (configuration: Configuration) => Metric,
  name: string,
  help: string,
  label: string | undefined,
  read: () => Readonly<Record<string, number>>,
): void {
  replace(name);
  void new Type({
    name,
    help,
    labelNames: label === undefined ? [] : [label],
    collect() {
      this.reset();
      for (const [value, current] of Object.entries(read()))
        this.inc(label === undefined ? {} : { [label]: value }, current);
    },
  });
}

// A process registers each metric once, but tests start several servers in one process.
function replace(name: string): void {
  register.removeSingleMetric(name);
}
