import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import type { Cluster } from '../support/postgresql.ts';
import { stopServer } from '../support/process.ts';
import { makeProbe, type ProbeSample } from '../support/probed.ts';
import { countOf, load, startLoad, timesOf, type LoadPlan } from '../support/open-load.ts';
import { mixedLoad, shopRequests } from '../support/shop-load.ts';
import { until } from '../support/until.ts';
import type { Fault, Figures, FaultContext } from './fault.ts';
import { portOf, startStocked } from './place.ts';

const WARM_UP_MINUTES = 10;
const SHORT_MINUTES = 1 / 6;
const PRODUCTS = 10_000;
/** Number of clients that measure the capacity. */
const CLIENTS = 32;
const MAX_SLOPE = 0.5;
const MAX_FILES = 5;

/** A sample, with the minutes since the start. */
interface Sample extends ProbeSample {
  minutes: number;
}

/** Mixed load for ten minutes: reads, pages, creations and logins. */
export const day: Fault = {
  name: 'day',
  promise: 'Ten minutes of mixed requests at half of the capacity: no request fails.',
  on: ['embedded', 'postgresql'],
  run: (context) => runSoak(context, 10, 1 / 2),
};

/** Half of that load for an hour. */
export const soak: Fault = {
  name: 'soak',
  promise:
    'An hour of mixed requests at a quarter of the capacity: no request fails, and memory and open files do not grow.',
  on: ['embedded', 'postgresql'],
  run: (context) => runSoak(context, 60, 1 / 4),
};

async function runSoak(
  context: FaultContext,
  longMinutes: number,
  share: number,
): Promise<Figures> {
  const { short } = context;
  const minutes = short ? SHORT_MINUTES : longMinutes;
  const warmUp = Math.min(WARM_UP_MINUTES, minutes / 4);
  const probe = await makeProbe();
  const settings = { ...probe.env, LOG_LEVEL: 'error' };
  const { cluster, server } = await startStocked(context, PRODUCTS, settings);
  const plan = {
    port: portOf(server),
    parts: mixedLoad(await shopRequests(server.url)),
    connections: CLIENTS,
  };
  const capacity = context.capacity ?? (await measureCapacity(plan, short ? 2 : 20));
  await untilPoolIdle(cluster);
  const before = await probe.sample();
  const running = startLoad({
    ...plan,
    connections: 256,
    rate: capacity * share,
    seconds: minutes * 60,
  });
  const samples = await takeSamples(() => probe.sample(), minutes);
  const loaded = await running.done;
  await untilPoolIdle(cluster);
  // Idle connections of clients close after five seconds, and those of the pool after ten.
  await until(
    async () => (await probe.sample()).files <= before.files + MAX_FILES,
    `at most ${before.files} open files, as at the start`,
  );
  const after = await probe.sample();
  const settled = samples.filter((sample) => sample.minutes >= warmUp);
  const slope = slopeOf(settled);
  const answered = countOf(loaded, 100, 599);
  assert.equal(countOf(loaded, 500, 599), 0, JSON.stringify(loaded.answers));
  assert.equal(countOf(loaded, 200, 299), loaded.sent, JSON.stringify(loaded.answers));
  assert.deepEqual([loaded.lost, loaded.unconnected, loaded.unanswered], [0, 0, 0]);
  if (minutes > WARM_UP_MINUTES)
    assert.ok(slope < MAX_SLOPE, `the heap grows by ${slope.toFixed(2)} MiB a minute`);
  const { code, stderr } = await stopServer(server);
  assert.deepEqual([code, stderr], [0, '']);
  return {
    minutes: Number(minutes.toFixed(1)),
    capacity: `${capacity.toFixed(0)}/s${context.capacity === undefined ? '' : ', measured before'}`,
    [`answers at ${share * 100} % of it`]: answered,
    'failed or lost': 0,
    'p50 and p99 of reads by REST': `${timesOf(loaded.byPart['rest'])} (goal: p99 150 ms)`,
    'of pages by GraphQL': timesOf(loaded.byPart['graphql']),
    'of creations': timesOf(loaded.byPart['creations']),
    'of logins': timesOf(loaded.byPart['logins']),
    'heap after collection': `${settled[0]?.heap.toFixed(1)} MiB after warm-up, ${settled.at(-1)?.heap.toFixed(1)} MiB at the end`,
    'its slope': `${slope.toFixed(3)} MiB a minute (goal: below ${MAX_SLOPE})`,
    'memory of the process': `${settled[0]?.rss.toFixed(0)} to ${settled.at(-1)?.rss.toFixed(0)} MiB`,
    'open files before and after': `${before.files} and ${after.files}`,
    'lag of the event loop (p99)': `${medianOf(settled.map(({ lagP99 }) => lagP99)).toFixed(1)} ms (goal: 50 ms)`,
  };
}

// At its capacity the server may reject requests with 503; no request fails.
async function measureCapacity(plan: Omit<LoadPlan, 'seconds'>, seconds: number): Promise<number> {
  const loaded = await load({ ...plan, seconds });
  assert.equal(
    countOf(loaded, 500, 502) + countOf(loaded, 504, 599),
    0,
    JSON.stringify(loaded.answers),
  );
  return countOf(loaded, 200, 299) / loaded.seconds;
}

async function takeSamples(sample: () => Promise<ProbeSample>, minutes: number): Promise<Sample[]> {
  const every = Math.min(1, minutes / 10);
  const samples: Sample[] = [];
  for (let at = every; at <= minutes; at += every) {
    await setTimeout(every * 60_000);
    samples.push({ minutes: at, ...(await sample()) });
  }
  return samples;
}

// Waits until no transaction and no lock is left in the database.
async function untilPoolIdle(cluster: Cluster | undefined): Promise<void> {
  if (!cluster) return;
  const text = `select 1 from pg_stat_activity where application_name = 'shopfront' and state <> 'idle'`;
  await until(async () => (await cluster.sql(text)).length === 0, 'an idle pool');
}

// Least squares, in MiB per minute.
function slopeOf(samples: readonly Sample[]): number {
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [
    mean(samples.map((sample) => sample.minutes)),
    mean(samples.map(({ heap }) => heap)),
  ];
  const over = samples.reduce((sum, { minutes, heap }) => sum + (minutes - x) * (heap - y), 0);
  return over / samples.reduce((sum, { minutes }) => sum + (minutes - x) ** 2, 0);
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
