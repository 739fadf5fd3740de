import { superviseJobs } from '../../src/database/jobs.ts';
import type { Shop } from './shop.ts';

/** Moves the clocks of the app and of all jobs forward. The library uses the database's clock. */
export async function passTime(shop: Shop, ms: number): Promise<void> {
  shop.advanceClock(ms);
  const columns = ['start_after', 'created_on', 'started_on', 'completed_on', 'keep_until'];
  const earlier = columns.map((column) => `${column} = ${column} - interval '${ms / 1000} s'`);
  await shop.sql(`update pgboss.job set ${earlier.join()}`);
}

/** Retries the expired jobs and deletes the old ones, whenever that was done last. */
export async function expireJobs(shop: Shop): Promise<void> {
  await shop.sql(
    'update pgboss.queue set monitor_claim_on = null, monitor_on = null, maintain_on = null',
  );
  await superviseJobs(shop.workerContext());
}
