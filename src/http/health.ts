import { sendJson } from './responses.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './paths.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * `/livez`: the process runs. `/readyz`: the process can serve requests, because the database is
 * available and the process is not shutting down; `read-only` if a replica serves the catalogue
 * while the primary is down.
 */
export function healthEndpoints(dependencies: Dependencies): Endpoint[] {
  const probe = (path: string, answer: (exchange: Exchange) => Promise<void>): Endpoint => ({
    method: 'GET',
    path,
    errorKey: 'detail',
    handle: (exchange) => {
      exchange.set({ 'Cache-Control': 'no-store' });
      return answer(exchange);
    },
  });
  return [
    probe('/livez', async (exchange) => sendJson(exchange, 200, { status: 'ok' })),
    probe('/readyz', async (exchange) => {
      const status = dependencies.isDraining() ? 'unavailable' : await databaseStatus(dependencies);
      if (status === 'unavailable') exchange.set({ 'Retry-After': '1' });
      sendJson(exchange, status === 'unavailable' ? 503 : 200, { status });
    }),
  ];
}

async function databaseStatus({
  database,
  replicaWithoutPrimary,
}: Dependencies): Promise<'ok' | 'read-only' | 'unavailable'> {
  const responds = await database()
    ?.ping()
    .then(
      () => true,
      () => false,
    );
  if (responds) return 'ok';
  return replicaWithoutPrimary?.() ? 'read-only' : 'unavailable';
}
