import type { TracingChannel } from 'node:diagnostics_channel';
import { Histogram } from 'prom-client';
import {
  databaseChannel,
  hashingChannel,
  resolvingChannel,
  type Timed,
} from '../core/tracing-channels.ts';

/** In seconds, for parts of a request. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

let isMeasuring = false;

/** Starts measuring the database, resolvers and password hashes. */
export function measureTimings(): void {
  if (isMeasuring) return;
  isMeasuring = true;
  measure(
    databaseChannel,
    new Histogram({
      name: 'shopfront_database_duration_seconds',
      help: 'Duration of database reads, writes, transactions and their statements, including the wait for a connection.',
      labelNames: ['kind'],
      buckets: BUCKETS,
    }),
    ({ kind }) => kind,
  );
  measure(
    hashingChannel,
    new Histogram({
      name: 'shopfront_password_hash_duration_seconds',
      help: 'Duration of password hashes, including the wait for a thread.',
      labelNames: ['kind'],
      buckets: BUCKETS,
    }),
    ({ kind }) => kind,
  );
  measure(
    resolvingChannel,
    new Histogram({
      name: 'shopfront_resolver_duration_seconds',
      help: 'Duration of GraphQL root fields, by resolvers and compiled operations.',
      labelNames: ['field'],
      buckets: BUCKETS,
    }),
    ({ field }) => field,
  );
}

function measure<Work extends Timed>(
  channel: TracingChannel<unknown, Work>,
  histogram: Histogram,
  labelOf: (work: Work) => string,
): void {
  // Cached, because the library's lookup takes longer than the measurement. Labels are few.
  const measures = new Map<string, Histogram.Internal<string>>();
  const measureOf = (label: string) => {
    const made = histogram.labels(label);
    measures.set(label, made);
    return made;
  };
  channel.subscribe({
    start: (work) => void (work.startedAt = performance.now()),
    asyncEnd: (work) => {
      const label = labelOf(work);
      (measures.get(label) ?? measureOf(label)).observe(
        (performance.now() - (work.startedAt ?? 0)) / 1000,
      );
    },
    end: ignore,
    asyncStart: ignore,
    error: ignore,
  });
}

function ignore(): void {}
