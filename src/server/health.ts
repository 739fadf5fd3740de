import type { Response } from 'express';
import { answerJson } from './answers.ts';
import type { Endpoint } from './paths.ts';
import type { Services } from './services.ts';

/** `/livez`: the process runs. `/readyz`: it can serve, for it has its database and is not on its way out. */
export function healthEndpoints(services: Services): Endpoint[] {
  const probe = (path: string, answer: (res: Response) => Promise<void>): Endpoint => ({
    method: 'GET',
    path,
    reads: [],
    errorKey: 'detail',
    answer: (_req, res) => answer(res.set('Cache-Control', 'no-store')),
  });
  return [
    probe('/livez', async (res) => answerJson(res, 200, { status: 'ok' })),
    probe('/readyz', async (res) => {
      const ready = !services.isDraining() && (await answers(services));
      if (!ready) res.set('Retry-After', '1');
      answerJson(res, ready ? 200 : 503, { status: ready ? 'ok' : 'unavailable' });
    }),
  ];
}

async function answers({ ping }: Services): Promise<boolean> {
  return ping().then(
    () => true,
    () => false,
  );
}
