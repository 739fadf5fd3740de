import express, { type Express } from 'express';
import { collectDefaultMetrics, Counter, register, type Registry } from 'prom-client';
import { gauge, gauges } from '../core/metrics.ts';
import { VERSION } from '../core/version.ts';
import type { Dependencies } from './dependencies.ts';
import { measureTimings } from '../telemetry/timing-metrics.ts';

const CALLS = 'shopfront_rest_calls_total';

/**
 * Returns the metrics of this process: Node's own, those of core/metrics.ts, and those of the
 * dependencies.
 */
export function openMetrics({
  calls,
  database,
}: Pick<Dependencies, 'calls' | 'database'>): Registry {
  if (!register.getSingleMetric('process_resident_memory_bytes')) collectDefaultMetrics();
  measureTimings();
  register.removeSingleMetric(CALLS);
  void new Counter({
    name: CALLS,
    help: 'Calls of REST endpoints by endpoint, client (user agent) and subject (username).',
    labelNames: ['endpoint', 'client', 'subject'],
    collect() {
      this.reset();
      for (const { endpoint, client, subject, calls: count } of calls.series())
        this.inc({ endpoint, client, subject }, count);
    },
  });
  gauges('shopfront_build_info', 'Version of the server. Always 1.', 'version', () => ({
    [VERSION]: 1,
  }));
  gauge('shopfront_database_up', 'Whether the database is available: 1 or 0.', () =>
    database() ? 1 : 0,
  );
  gauges(
    'shopfront_pool_connections',
    'Connections of the database pool by state.',
    'state',
    () => {
      const { open = 0, idle = 0 } = database()?.connections() ?? {};
      return { used: open - idle, idle };
    },
  );
  gauge(
    'shopfront_pool_waiting',
    'Statements and transactions that wait for a pool connection.',
    () => database()?.waiting() ?? 0,
  );
  return register;
}

/** Serves only `GET /metrics`, for a separate port that clients cannot reach. */
export function metricsApp(registry: Registry, { log }: Pick<Dependencies, 'log'>): Express {
  const app = express()
    .disable('x-powered-by')
    .disable('etag')
    .enable('strict routing')
    .enable('case sensitive routing');
  app
    .route('/metrics')
    .get(async (_req, res) => {
      const text = await registry.metrics().catch((error: unknown) => {
        log.error({ err: error }, 'Metrics could not be collected');
      });
      if (text === undefined) res.status(500);
      else res.type(registry.contentType);
      res.set({ 'Cache-Control': 'no-store', 'X-Content-Type-Options': 'nosniff' }).end(text);
    })
    .all((_req, res) => void res.status(405).set('Allow', 'GET, HEAD').end());
  return app.use((_req, res) => void res.status(404).end());
}
