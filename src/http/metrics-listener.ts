import express, { type Express } from 'express';
import { collectDefaultMetrics, register, type Registry } from 'prom-client';
import { gauge, gauges } from '../core/metrics.ts';
import { VERSION } from '../core/version.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * Returns the metrics of this process: Node's own, those of core/metrics.ts, and those of the
 * dependencies.
 */
export function openMetrics({ database }: Pick<Dependencies, 'database'>): Registry {
  if (!register.getSingleMetric('process_resident_memory_bytes')) collectDefaultMetrics();
  const connections = () => database()?.connections() ?? { open: 0, idle: 0, waiting: 0 };
  gauges('shopfront_build_info', 'Version of the server. Always 1.', 'version', () => ({
    [VERSION]: 1,
  }));
  gauge('shopfront_database_up', 'Whether the database is available: 1 or 0.', () =>
    database() ? 1 : 0,
  );
  gauges('shopfront_pool_connections', 'Connections of the pool by state.', 'state', () => {
    const { open, idle } = connections();
    return { used: open - idle, idle };
  });
  gauge(
    'shopfront_pool_waiting',
    'Statements and transactions that wait for a pool connection.',
    () => connections().waiting,
  );
  return register;
}

/** Serves only `GET /metrics`, for a separate port that clients cannot reach. */
export function metricsApp(registry: Registry): Express {
  return express()
    .disable('x-powered-by')
    .set('env', 'production')
    .get('/metrics', async (_req, res) => {
      res.type(registry.contentType).send(await registry.metrics());
    });
}
