import type { Dependencies } from './dependencies.ts';
import type { Endpoint } from './endpoints.ts';
import { sendBody } from './responses.ts';

/** `/livez`: the process runs. `/readyz`: the database is available, and no shutdown runs. */
export function healthEndpoints({ database, isDraining }: Dependencies): Endpoint[] {
  const probe = (path: string, isOk: () => Promise<boolean>): Endpoint => ({
    method: 'GET',
    path,
    handlers: [
      async (_req, res) => {
        const ok = await isOk();
        res.set({ 'Cache-Control': 'no-store', ...(!ok && { 'Retry-After': '1' }) });
        sendBody(res, ok ? 200 : 503, JSON.stringify({ status: ok ? 'ok' : 'unavailable' }));
      },
    ],
  });
  const responds = async () => {
    const ping = isDraining() ? undefined : database()?.ping();
    return ping ? ping.then(() => true).catch(() => false) : false;
  };
  return [probe('/livez', async () => true), probe('/readyz', responds)];
}
