import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { collectDefaultMetrics, Counter, register, type Registry } from 'prom-client';
import { gauge, gauges } from '../core/metrics.ts';
import { HttpError } from './http-error.ts';
import { inFlight } from './in-flight.ts';
import { refuseHeaders } from './request-headers.ts';
import type { Services } from './dependencies.ts';
import { measureTimings } from '../telemetry/timing-metrics.ts';

const PATH = '/metrics';
const CALLS = 'shopfront_rest_calls_total';

/** The metrics of this process: Node's own, those that stand where something is counted (core/metrics.ts), and what the services know. */
export function openMetrics({ calls, database }: Pick<Services, 'calls' | 'database'>): Registry {
  if (!register.getSingleMetric('process_resident_memory_bytes')) collectDefaultMetrics();
  measureTimings();
  register.removeSingleMetric(CALLS);
  void new Counter({
    name: CALLS,
    help: 'Calls of REST rows, by row, client (user agent) and subject (username).',
    labelNames: ['row', 'client', 'subject'],
    collect() {
      this.reset();
      for (const { row, client, subject, calls: count } of calls.series()) this.inc({ row, client, subject }, count);
    },
  });
  gauge(
    'shopfront_requests_in_flight',
    'Requests that are queued, in progress or wait for their body, except those that wait for a hash or a slow reader.',
    () => inFlight.size,
  );
  gauge('shopfront_database_up', 'Whether the database answers: 1 or 0.', () => (database() ? 1 : 0));
  gauges('shopfront_pool_connections', 'Connections of the pool to the database, by whether somebody uses them.', 'state', () => {
    const { open = 0, idle = 0 } = database()?.connections() ?? {};
    return { used: open - idle, idle };
  });
  gauge('shopfront_pool_waiting', 'Statements and transactions that wait for a connection of the pool.', () => database()?.waiting() ?? 0);
  return register;
}

/** Answers `GET /metrics`, and nothing else: for a port of its own, which clients do not reach. */
export function metricsListener(registry: Registry, { log }: Pick<Services, 'log'>): RequestListener {
  return async (req, res) => {
    try {
      await answer(registry, req, res);
    } catch (error) {
      if (error instanceof HttpError) return refuse(res, error.status);
      log.error({ err: error }, 'the metrics could not be read');
      refuse(res, 500);
    }
  };
}

async function answer(registry: Registry, req: IncomingMessage, res: ServerResponse): Promise<void> {
  refuseHeaders(req);
  const { method, url = '' } = req;
  if (url !== PATH && !url.startsWith(`${PATH}?`)) return refuse(res, 404);
  if (method !== 'GET' && method !== 'HEAD') return refuse(res, 405, { Allow: 'GET, HEAD' });
  const text = await registry.metrics();
  res.writeHead(200, {
    'Content-Type': registry.contentType,
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
  });
  res.end(text);
}

// Of a body that nobody reads, the connection is rid by its end.
function refuse(res: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  res.writeHead(status, { ...headers, 'Content-Length': '0', Connection: 'close' });
  res.end();
}
