import type { TracingChannel } from 'node:diagnostics_channel';
import { Histogram } from 'prom-client';
import { asking, hashing, resolving, type Timed } from '../core/tracing-channels.ts';

/** In seconds, for what takes a part of a request. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

let isMeasuring = false;

/** Measures from now on what requests spend their time with: the database, resolvers, hashes. */
export function measureTimings(): void {
  if (isMeasuring) return;
  isMeasuring = true;
  measure(
    asking,
    new Histogram({
      name: 'shopfront_database_duration_seconds',
      help: 'How long the database took, with the wait for a connection: single reads and writes, transactions, and each statement of one.',
      labelNames: ['kind'],
      buckets: BUCKETS,
    }),
    ({ kind }) => kind,
  );
  measure(
    hashing,
    new Histogram({
      name: 'shopfront_hash_duration_seconds',
      help: 'How long passwords took to be hashed, with the wait for a thread.',
      labelNames: ['kind'],
      buckets: BUCKETS,
    }),
    ({ kind }) => kind,
  );
  measure(
    resolving,
    new Histogram({
      name: 'shopfront_resolver_duration_seconds',
      help: 'How long root fields of GraphQL took to be resolved, by resolvers and by plans.',
      labelNames: ['field'],
      buckets: BUCKETS,
    }),
    ({ field }) => field,
  );
}

function measure<Work extends Timed>(channel: TracingChannel<unknown, Work>, histogram: Histogram, labelOf: (work: Work) => string): void {
  // What the library makes for a label is kept: to find it takes longer than to measure. There are as many as we name.
  const kept = new Map<string, Histogram.Internal<string>>();
  const measureOf = (label: string) => {
    const made = histogram.labels(label);
    kept.set(label, made);
    return made;
  };
  channel.subscribe({
    start: (work) => void (work.startedAt = performance.now()),
    asyncEnd: (work) => {
      const label = labelOf(work);
      (kept.get(label) ?? measureOf(label)).observe((performance.now() - (work.startedAt ?? 0)) / 1000);
    },
    end: ignore,
    asyncStart: ignore,
    error: ignore,
  });
}

function ignore(): void {}
