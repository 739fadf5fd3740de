import { Counter, Gauge, register } from 'prom-client';

/** A number that is counted up by adding to it: to count costs nothing else, and it is read when somebody asks for the metrics. */
export interface Count {
  value: number;
}

/** A metric of one number that only grows, since the process began. One of the same name from before is replaced. */
export function counter(name: string, help: string): Count {
  const counted = { value: 0 };
  replace(name);
  void new Counter({
    name,
    help,
    collect() {
      this.reset();
      this.inc(counted.value);
    },
  });
  return counted;
}

/** The same with one number for each value of a label, all of which are known beforehand. */
export function counters<Value extends string>(name: string, help: string, label: string, values: readonly Value[]): Record<Value, number> {
  const counted = Object.fromEntries(values.map((value) => [value, 0])) as Record<Value, number>;
  replace(name);
  void new Counter({
    name,
    help,
    labelNames: [label],
    collect() {
      this.reset();
      for (const value of values) this.inc({ [label]: value }, counted[value]);
    },
  });
  return counted;
}

/** A metric of a number that is so just now, and is read when somebody asks for the metrics. One of the same name from before is replaced. */
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

/** The same with a number for each value of a label, those that there are just now. */
export function gauges(name: string, help: string, label: string, read: () => Readonly<Record<string, number>>): void {
  replace(name);
  void new Gauge({
    name,
    help,
    labelNames: [label],
    collect() {
      this.reset();
      for (const [value, now] of Object.entries(read())) this.set({ [label]: value }, now);
    },
  });
}

// What a process has one of is opened once; tests open several of them in one process.
function replace(name: string): void {
  register.removeSingleMetric(name);
}
