import { answerJson } from './responses.ts';
import type { Exchange } from './exchange.ts';
import type { Endpoint } from './paths.ts';
import type { Services } from './dependencies.ts';

/** `/livez`: the process runs. `/readyz`: it can serve, for it has its database and is not on its way out. */
export function healthEndpoints(services: Services): Endpoint[] {
  const probe = (path: string, answer: (exchange: Exchange) => Promise<void>): Endpoint => ({
    method: 'GET',
    path,
    errorKey: 'detail',
    answer: (exchange) => {
      exchange.set({ 'Cache-Control': 'no-store' });
      return answer(exchange);
    },
  });
  return [
    probe('/livez', async (exchange) => answerJson(exchange, 200, { status: 'ok' })),
    probe('/readyz', async (exchange) => {
      const ready = !services.isDraining() && (await answers(services));
      if (!ready) exchange.set({ 'Retry-After': '1' });
      answerJson(exchange, ready ? 200 : 503, { status: ready ? 'ok' : 'unavailable' });
    }),
  ];
}

async function answers({ database }: Services): Promise<boolean> {
  const reached = database();
  if (!reached) return false;
  return reached.ping().then(
    () => true,
    () => false,
  );
}
