import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { collectDefaultMetrics, Counter, register, type Registry } from 'prom-client';
import { gauge, gauges } from '../core/metrics.ts';
import { VERSION } from '../core/version.ts';
import { HttpError } from './http-error.ts';
import { inFlight } from './in-flight.ts';
import { rejectInvalidHeaders } from './request-headers.ts';
import type { Dependencies } from './dependencies.ts';
import { measureTimings } from '../telemetry/timing-metrics.ts';

const PATH = '/metrics';
const CALLS = 'shopfront_rest_calls_total';

/**
 * Returns the metrics of this process: Node's own, those of core/metrics.ts, and those of the
 * dependencies.
 */
export function openMetrics({
  calls,
  database,
  replicaWithoutPrimary,
}: Pick<Dependencies, 'calls' | 'database' | 'replicaWithoutPrimary'>): Registry {
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
  gauge(
    'shopfront_requests_in_flight',
    'Requests queued, in progress or waiting for their body, except those waiting for a password hash or a slow reader.',
    () => inFlight.size,
  );
  gauge('shopfront_database_up', 'Whether the database is available: 1 or 0.', () =>
    database() ? 1 : 0,
  );
  gauge(
    'shopfront_reads_without_primary',
    'Whether replicas serve the catalogue because the primary is down: 1 or 0.',
    () => (replicaWithoutPrimary?.() ? 1 : 0),
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
export function metricsListener(
  registry: Registry,
  { log }: Pick<Dependencies, 'log'>,
): RequestListener {
  return async (req, res) => {
    try {
      await sendMetrics(registry, req, res);
    } catch (error) {
      if (error instanceof HttpError) return sendStatus(res, error.status);
      log.error({ err: error }, 'Metrics could not be collected');
      sendStatus(res, 500);
    }
  };
}

async function sendMetrics(
  registry: Registry,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> {
  rejectInvalidHeaders(req);
  const { method, url = '' } = req;
  if (url !== PATH && !url.startsWith(`${PATH}?`)) return sendStatus(res, 404);
  if (method !== 'GET' && method !== 'HEAD') return sendStatus(res, 405, { Allow: 'GET, HEAD' });
  const text = await registry.metrics();
  res.writeHead(200, {
    'Content-Type': registry.contentType,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  res.end(text);
}

// Closes the connection, because a request body is not read.
function sendStatus(
  res: ServerResponse,
  status: number,
  headers: Record<string, string> = {},
): void {
  res.writeHead(status, { ...headers, 'Content-Length': '0', Connection: 'close' });
  res.end();
}
