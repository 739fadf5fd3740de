import { sendJson } from './responses.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './paths.ts';
import type { Dependencies } from './dependencies.ts';

/**
 * `/livez`: the process runs. `/readyz`: the process can serve requests, because the database is
 * available and the process is not shutting down.
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
      const ready = !dependencies.isDraining() && (await isDatabaseAvailable(dependencies));
      if (!ready) exchange.set({ 'Retry-After': '1' });
      sendJson(exchange, ready ? 200 : 503, { status: ready ? 'ok' : 'unavailable' });
    }),
  ];
}

async function isDatabaseAvailable({ database }: Dependencies): Promise<boolean> {
  const connected = database();
  if (!connected) return false;
  return connected.ping().then(
    () => true,
    () => false,
  );
}
