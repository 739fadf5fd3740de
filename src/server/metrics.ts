import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { collectDefaultMetrics, Counter, Registry } from 'prom-client';
import { refusals } from './overload.ts';
import type { Services } from './services.ts';

const PATH = '/metrics';

/** The metrics of this process: Node's own, and what the services count. */
export function openMetrics({ calls }: Pick<Services, 'calls'>): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  void new Counter({
    name: 'shopfront_rest_calls_total',
    help: 'Calls of REST rows, by row, client (user agent) and subject (username).',
    labelNames: ['row', 'client', 'subject'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { row, client, subject, calls: count } of calls.series()) this.inc({ row, client, subject }, count);
    },
  });
  void new Counter({
    name: 'shopfront_overload_refusals_total',
    help: 'Requests refused with 503 because there were more than could be answered in good time.',
    registers: [registry],
    collect() {
      this.reset();
      this.inc(refusals());
    },
  });
  return registry;
}

/** Answers `GET /metrics`, and nothing else: for a port of its own, which clients do not reach. */
export function metricsListener(registry: Registry, { log }: Pick<Services, 'log'>): RequestListener {
  return async (req, res) => {
    try {
      await answer(registry, req, res);
    } catch (error) {
      log.error({ err: error }, 'the metrics could not be read');
      refuse(res, 500);
    }
  };
}

async function answer(registry: Registry, { method, url = '' }: IncomingMessage, res: ServerResponse): Promise<void> {
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
