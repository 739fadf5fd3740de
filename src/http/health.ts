import type { Response } from 'express';
import type { Endpoint } from './endpoints.ts';
import type { Dependencies } from './dependencies.ts';
import { sendBody } from './responses.ts';

/**
 * `/livez`: the process runs. `/readyz`: the process can serve requests, because the database is
 * available and the process is not shutting down.
 */
export function healthEndpoints(dependencies: Dependencies): Endpoint[] {
  const probe = (path: string, statusOf: () => Promise<string>): Endpoint => ({
    method: 'GET',
    path,
    errorFormat: { errorKey: 'detail', inputPart: 'query' },
    handlers: [async (_req, res) => sendStatus(res, await statusOf())],
  });
  return [
    probe('/livez', async () => 'ok'),
    probe('/readyz', async () =>
      dependencies.isDraining() ? UNAVAILABLE : databaseStatus(dependencies),
    ),
  ];
}

const UNAVAILABLE = 'unavailable';

function sendStatus(res: Response, status: string): void {
  res.set({ 'Cache-Control': 'no-store', ...(status === UNAVAILABLE && { 'Retry-After': '1' }) });
  sendBody(res, status === UNAVAILABLE ? 503 : 200, JSON.stringify({ status }));
}

async function databaseStatus({ database }: Dependencies): Promise<string> {
  const responds = await database()
    ?.ping()
    .then(
      () => true,
      () => false,
    );
  return responds ? 'ok' : UNAVAILABLE;
}
